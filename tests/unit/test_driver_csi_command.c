/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver `csi` with a program of its own to run. The program is this test itself, started with --child: it serves what driver_ends.h has, and ends in
 * the middle of a CreateVolume of the name "crash".
 */
#include <sys/stat.h>

#include "driver_ends.h"

/* ---- the program ---- */

static struct error *
create_or_crash(struct call *call, const Csi__V1__CreateVolumeRequest *request,
                Csi__V1__CreateVolumeResponse *reply)
{
    if (!strcmp(request->name, "crash"))
        _exit(7);
    return child_create(call, request, reply);
}

__attribute__((noreturn)) static void
be_child(void)
{
    static const struct csi_v1_controller handlers = {
        .create_volume = {create_or_crash},
        .controller_get_capabilities = {child_controller},
    };
    struct child child = {.entered = GATE_INIT, .may_go = GATE_INIT};
    ends_open_runtime(&child.ends, (struct runtime_options){0});
    struct server *server = server_new(child.ends.runtime, &(struct server_options){0});
    server_add_service(server, &csi_v1_identity_service, &child_identity_handlers, &child);
    server_add_service(server, &csi_v1_controller_service, &handlers, &child);
    succeed(server_listen(server, getenv("CSI_ENDPOINT"), NULL));
    for (;;)
        pause();
}

/* ---- the test ---- */

struct place {
    char directory[64];
    char endpoint[96];
    struct front front;
};

static void
place_open(struct place *place)
{
    snprintf(place->directory, sizeof place->directory, "/tmp/skycap-command-XXXXXX");
    CHECK(mkdtemp(place->directory) != NULL);
    snprintf(place->endpoint, sizeof place->endpoint, "unix://%s/csi.sock", place->directory);
    front_prepare(&place->front);
    struct arena *arena = &place->front.arena;
    struct setting *argument = arena_zeroed(arena, sizeof *argument);
    struct setting *program = arena_zeroed(arena, sizeof *program);
    char *path = arena_zeroed(arena, 4096);
    CHECK(readlink("/proc/self/exe", path, 4095) > 0);
    *argument = (struct setting){.line = 3, .text = "--child"};
    *program = (struct setting){.line = 3, .text = path, .next = argument};
    struct setting command = {SETTING_LIST, .line = 3, .first = program};
    const struct setting *settings =
        make_settings(arena, "endpoint", place->endpoint, "probe-interval", "200ms", NULL);
    front_open(&place->front, &(struct front_setup){
                                  .settings = add_setting(arena, settings, "command", &command)});
}

static void
place_close(struct place *place)
{
    char path[160];
    front_close(&place->front);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/csi.sock%s", place->directory, i ? ".lock" : "");
        unlink(path);
    }
    CHECK(rmdir(place->directory) == 0);
}

static void
a_program_is_started_and_called(void)
{
    struct place place;
    char id[64] = "";
    place_open(&place);
    CHECK(wait_for_facts(place.front.driver, true, NULL));
    CHECK_CODE(create(&place.front, "one", NULL, id), CODE_OK);
    CHECK_TEXT(id, "id-of-one");
    place_close(&place);
}

static void
a_program_that_crashes_comes_back(void)
{
    struct place place;
    place_open(&place);
    CHECK(wait_for_facts(place.front.driver, true, NULL));
    for (unsigned n = 0; n < 2; n++) {
        CHECK_CODE(create(&place.front, "crash", NULL, NULL), CODE_UNAVAILABLE);
        CHECK(wait_for_trouble(place.front.driver, "its program has ended with exit code 7"));
        CHECK(wait_for_facts(place.front.driver, true, NULL));
        CHECK_CODE(create(&place.front, "one", NULL, NULL), CODE_OK);
    }
    place_close(&place);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--child"))
        be_child();
    a_program_is_started_and_called();
    a_program_that_crashes_comes_back();
    return check_report("driver_csi_command");
}
