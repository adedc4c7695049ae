/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of Velero for the tests of the host, with a volume snapshotter of version 2 whose
 * snapshots take their time. How it misbehaves is told by the name that it was started by:
 *
 *     slow        does not
 *     tcp         listens on TCP, which is allowed
 *     many        lists 5000 kinds
 *     unknown     lists kinds that nobody knows, and names that are not valid
 *     closes      closes its connections once it is asked for its list, and stays
 *     flood       writes to standard error without end
 *     crashes     kills itself at every second question about progress
 *     empty       answers Progress without a progress
 *     grandchild  leaves a child behind that holds its outputs
 *     stubborn    neither ends when it is asked to, nor by SIGTERM
 *
 * Snapshots are files in the directory of the setting "directory": when it was begun, in ms. The
 * setting "ms" is how long one takes. A file NAME.cancelled says that it was cancelled.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "message/message_map.h"
#include "message/message_time.h"
#include "proto/goplugin.rpc.h"
#include "proto/velero_v1.rpc.h"
#include "proto/velero_v2.rpc.h"
#include "rpc/server/server.h"

#define NAME "test.skycap.dev/slow"
#define TOTAL (100 << 20)

static const char *mode;
static char directory[4096] = "";
static int64_t duration_ms = 1000;

static bool
is(const char *wanted)
{
    return strcmp(mode, wanted) == 0;
}

/* ---- the list ---- */

static void
add(Generated__ListPluginsResponse *reply, struct arena *arena, const char *kind, const char *name)
{
    Generated__PluginIdentifier *identifier = arena_alloc(arena, sizeof *identifier);
    generated__plugin_identifier__init(identifier);
    identifier->command = (char *)mode;
    identifier->kind = (char *)kind;
    identifier->name = (char *)name;
    reply->plugins[reply->n_plugins++] = identifier;
}

static void
close_connections(void)
{
    for (int fd = 3; fd < 100; fd++) {
        int is_listening = 1;
        socklen_t size = sizeof is_listening;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && !is_listening)
            shutdown(fd, SHUT_RDWR);
    }
}

static struct error *
list(struct call *call, const Generated__Empty *request, Generated__ListPluginsResponse *reply)
{
    struct arena *arena = call_arena(call);
    (void)request;
    reply->plugins = arena_alloc(arena, 6000 * sizeof(void *));
    if (is("closes"))
        close_connections();
    for (int i = 0; is("many") && i < 5000; i++)
        add(reply, arena, arena_print(arena, "Kind%d", i), NAME);
    if (is("unknown")) {
        add(reply, arena, "KindOfTheFuture", NAME);
        add(reply, arena, "VolumeSnapshotter", "no-domain");
        add(reply, arena, "VolumeSnapshotter", "Bad_Domain/name");
        add(reply, arena, "\033[2J", "a/\033[2J");
        add(reply, arena, "BackupItemActionV2", "test.skycap.dev/action");
        add(reply, arena, "VolumeSnapshotter", "test.skycap.dev/twice");
        add(reply, arena, "VolumeSnapshotter", "test.skycap.dev/twice");
    }
    const char *extra = getenv("SKYCAP_VELERO_KINDS");
    if (extra && strcmp(extra, "VolumeSnapshotterV2") == 0 && !is("unknown"))
        add(reply, arena, extra, NAME);
    return NULL;
}

/* ---- files ---- */

static const char *
path_of(struct call *call, const char *id, const char *ending)
{
    return arena_print(call_arena(call), "%s/%s%s", directory, id, ending);
}

static void
append(const char *path, const char *line)
{
    FILE *file = fopen(path, "a");
    if (!file)
        abort();
    fprintf(file, "%s\n", line);
    fclose(file);
}

static bool
exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- the snapshotter ---- */

static struct error *
init(struct call *call, const Generated__VolumeSnapshotterInitRequest *request,
     Generated__Empty *reply)
{
    struct text_map config = message_map_read(request->config, request->n_config, call_arena(call));
    const char *ms = text_map_find(&config, "ms"), *where = text_map_find(&config, "directory");
    (void)reply;
    if (!where)
        return error_new(CODE_INVALID_ARGUMENT, "the setting directory is missing");
    snprintf(directory, sizeof directory, "%s", where);
    if (ms)
        duration_ms = atoll(ms);
    append(path_of(call, "inits", ""), "init");
    return NULL;
}

static struct error *
get_volume_id(struct call *call, const Generated__GetVolumeIDRequest *request,
              Generated__GetVolumeIDResponse *reply)
{
    (void)call;
    const char *text = (const char *)request->persistentvolume.data;
    bool is_foreign = memmem(text, request->persistentvolume.len, "foreign", 7);
    reply->volumeid = (char *)(is_foreign ? "" : "volume");
    return NULL;
}

static struct error *
get_volume_info(struct call *call, const Generated__GetVolumeInfoRequest *request,
                Generated__GetVolumeInfoResponse *reply)
{
    (void)call, (void)request;
    reply->volumetype = (char *)"odd";
    return NULL;
}

static struct error *
create(struct call *call, const Generated__CreateSnapshotRequest *request,
       Generated__CreateSnapshotResponse *reply)
{
    struct text_map tags = message_map_read(request->tags, request->n_tags, call_arena(call));
    reply->snapshotid = (char *)text_map_find(&tags, "velero.io/backup");
    append(path_of(call, reply->snapshotid, ""),
           arena_print(call_arena(call), "%lld", (long long)clock_boot_ms()));
    return NULL;
}

static struct error *
begun(struct call *call, const char *id, int64_t *ms)
{
    FILE *file = fopen(path_of(call, id, ""), "r");
    long long read_ms = 0;
    if (!file)
        return error_new(CODE_UNKNOWN, "there is no snapshot \"%s\"", id);
    bool is_read = fscanf(file, "%lld", &read_ms) == 1;
    fclose(file);
    *ms = read_ms;
    return is_read ? NULL : error_new(CODE_INTERNAL, "the snapshot \"%s\" is damaged", id);
}

static void
crash_every_second_time(struct call *call, const char *id)
{
    const char *mark = path_of(call, id, ".asked");
    if (!is("crashes"))
        return;
    if (unlink(mark) == 0)
        raise(SIGKILL);
    append(mark, "once");
}

static struct error *
progress(struct call *call, const V2__VolumeSnapshotterProgressRequest *request,
         V2__VolumeSnapshotterProgressResponse *reply)
{
    const char *id = request->snapshotid;
    int64_t begun_ms = 0;
    crash_every_second_time(call, id);
    struct error *error = begun(call, id, &begun_ms);
    if (error || is("empty"))
        return error;
    int64_t passed_ms = (int64_t)clock_boot_ms() - begun_ms;
    bool is_cancelled = exists(path_of(call, id, ".cancelled"));
    Generated__OperationProgress *now = arena_alloc(call_arena(call), sizeof *now);
    generated__operation_progress__init(now);
    now->completed = is_cancelled || passed_ms >= duration_ms;
    now->err = (char *)(is_cancelled ? "cancelled as asked" : "");
    now->ntotal = TOTAL;
    now->ncompleted = passed_ms >= duration_ms ? TOTAL : TOTAL * passed_ms / duration_ms;
    now->operationunits = (char *)"Bytes";
    now->description = (char *)"odd work";
    now->updated = message_time_new(clock_unix_ns(), call_arena(call));
    reply->progress = now;
    return NULL;
}

static struct error *
cancel(struct call *call, const V2__VolumeSnapshotterCancelRequest *request,
       Google__Protobuf__Empty *reply)
{
    int64_t begun_ms = 0;
    (void)reply;
    struct error *error = begun(call, request->operationid, &begun_ms);
    if (!error && (int64_t)clock_boot_ms() - begun_ms < duration_ms)
        append(path_of(call, request->operationid, ".cancelled"), "yes");
    return error;
}

static struct error *delete (struct call *call, const Generated__DeleteSnapshotRequest *request,
                             Generated__Empty *reply)
{
    (void)reply;
    unlink(path_of(call, request->snapshotid, ""));
    return NULL;
}

static const struct generated_plugin_lister lister = {.list_plugins = {list}};
static const struct v2_volume_snapshotter snapshotter = {
    .init = {init},
    .get_volume_id = {get_volume_id},
    .get_volume_info = {get_volume_info},
    .create_snapshot = {create},
    .delete_snapshot = {delete},
    .progress = {progress},
    .cancel = {cancel},
};

/* ---- the process ---- */

static struct error *
shut_down(struct call *call, const Plugin__Empty *request, Plugin__Empty *reply)
{
    (void)call, (void)request, (void)reply;
    if (is("stubborn"))
        return NULL;
    _exit(0);
}

static const struct plugin_grpccontroller controller = {.shutdown = {shut_down}};

static void
misbehave(void)
{
    if (is("stubborn"))
        signal(SIGTERM, SIG_IGN);
    if (is("grandchild") && fork() == 0) {
        sleep(1000);
        _exit(0);
    }
    while (is("flood"))
        fprintf(stderr, "{\"@level\":\"error\",\"@message\":\"too much\",\"n\":%d}\n", rand());
    for (;;)
        pause();
}

int
main(int count, char **arguments)
{
    struct log log = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    struct runtime *runtime;
    char address[4200], *slash = strrchr(arguments[0], '/');
    const char *cookie = getenv("VELERO_PLUGIN"), *where = getenv("PLUGIN_UNIX_SOCKET_DIR");
    (void)count;
    mode = slash ? slash + 1 : arguments[0];
    if (!cookie || strcmp(cookie, "hello") != 0 || !where)
        return 1;
    struct error *error = runtime_open(&(struct runtime_options){.log = &log}, &runtime);
    if (error)
        return 2;
    struct server *server = server_new(runtime, &(struct server_options){0});
    server_add_service(server, &generated_plugin_lister_service, &lister, NULL);
    server_add_service(server, &v2_volume_snapshotter_service, &snapshotter, NULL);
    server_add_service(server, &plugin_grpccontroller_service, &controller, NULL);
    snprintf(address, sizeof address, "unix:%s/odd.sock", where);
    error = server_listen(server, is("tcp") ? "127.0.0.1:0" : address, NULL);
    if (error)
        return 3;
    if (is("tcp"))
        printf("1|2|tcp|127.0.0.1:%u|grpc|\n", server_address(server, 0)->port);
    else
        printf("1|2|unix|%s|grpc|\n", address + strlen("unix:"));
    fflush(stdout);
    misbehave();
}
