/* SPDX-License-Identifier: Apache-2.0 */
/* skycap oim: the volumes of an OIM controller, asked directly or through the registry. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/size_text.h"
#include "cli/client.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "proto/oim.pb-c.h"
#include "registry/rights.h"

#define MAX_SECRET_BYTES 4096

/* ---- the controller to ask ---- */

static const char *registry;
static const char *controller;
static struct metadata controller_header;

/* clang-format off */
#define CONTROLLER_FLAGS                                                                           \
    {"registry", 0, "ADDR", OPTION_TEXT, &registry,                                                \
     "ask through the registry there, instead of the controller at --endpoint"},                   \
    {"controller", 0, "ID", OPTION_TEXT, &controller,                                              \
     "controller that the registry forwards the call to"}
/* clang-format on */

static const struct option controller_flags[] = {CONTROLLER_FLAGS, {0}};

static struct error *
choose_controller(struct client *client)
{
    struct client_flags *flags = &client->flags;
    if (!registry != !controller)
        return error_new(CODE_INVALID_ARGUMENT, "--registry and --controller go together");
    if (registry && flags->endpoint)
        return error_new(CODE_INVALID_ARGUMENT, "--registry and --endpoint exclude each other");
    if (!registry)
        return NULL;
    flags->endpoint = registry;
    if (flags->tls.ca_file && !flags->tls_name)
        flags->tls_name = REGISTRY_NAME;
    client->metadata = &controller_header;
    return error_wrap(metadata_add(&controller_header, &client->arena, "controllerid", controller,
                                   strlen(controller)),
                      "--controller");
}

static struct error *
ask(struct client *client, const char *method, const void *request, void *reply)
{
    struct error *error = choose_controller(client);
    return error ? error : client_ask(client, method, request, reply);
}

/* ---- map ---- */

static struct {
    const char *pool;
    const char *image;
    const char *user_id;
    const char *monitors;
    const char *secret_file;
} ceph;

static const struct option map_flags[] = {
    {"ceph-pool", 0, "NAME", OPTION_TEXT, &ceph.pool, "the volume is a Ceph image in this pool"},
    {"ceph-image", 0, "NAME", OPTION_TEXT, &ceph.image, "the name of that image"},
    {"ceph-user", 0, "NAME", OPTION_TEXT, &ceph.user_id,
     "Ceph user; default: that of the accelerator"},
    {"ceph-monitors", 0, "HOST,...", OPTION_TEXT, &ceph.monitors, "addresses of the Ceph monitors"},
    {"ceph-secret-file", 0, "FILE", OPTION_TEXT, &ceph.secret_file,
     "the user's key, on the first line; - reads standard input"},
    CONTROLLER_FLAGS,
    {0},
};

/* The key comes from a file, because every user can see the arguments of a process. */
static struct error *
read_secret(const char *path, struct arena *arena, char **out)
{
    char text[MAX_SECRET_BYTES + 1];
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof text, file) : 0;
    if (file && file != stdin)
        fclose(file);
    if (size == 0 || size > MAX_SECRET_BYTES)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--ceph-secret-file %s: it cannot be read, is empty, or has more than %d "
                         "bytes",
                         path, MAX_SECRET_BYTES);
    *out = arena_copy(arena, text, size);
    (*out)[strcspn(*out, "\r\n")] = '\0';
    return NULL;
}

static struct error *
read_ceph(struct arena *arena, Oim__V0__CephParams *out)
{
    if (!ceph.pool || !ceph.image)
        return error_new(CODE_INVALID_ARGUMENT,
                         "a volume of Ceph needs --ceph-pool and --ceph-image");
    out->pool = (char *)ceph.pool;
    out->image = (char *)ceph.image;
    if (ceph.user_id)
        out->user_id = (char *)ceph.user_id;
    if (ceph.monitors)
        out->monitors = (char *)ceph.monitors;
    return ceph.secret_file ? read_secret(ceph.secret_file, arena, &out->secret) : NULL;
}

static struct error *
map(struct client *client)
{
    Oim__V0__MapVolumeRequest request = OIM__V0__MAP_VOLUME_REQUEST__INIT;
    Oim__V0__MallocParams malloc_params = OIM__V0__MALLOC_PARAMS__INIT;
    Oim__V0__CephParams ceph_params = OIM__V0__CEPH_PARAMS__INIT;
    Oim__V0__MapVolumeReply *reply;
    bool is_ceph = ceph.pool || ceph.image || ceph.user_id || ceph.monitors || ceph.secret_file;
    struct error *error = is_ceph ? read_ceph(&client->arena, &ceph_params) : NULL;
    if (error)
        return error;
    request.volume_id = client->words[0];
    request.params_case = is_ceph ? OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH
                                  : OIM__V0__MAP_VOLUME_REQUEST__PARAMS_MALLOC;
    if (is_ceph)
        request.ceph = &ceph_params;
    else
        request.malloc = &malloc_params;
    error = ask(client, "oim.v0.Controller/MapVolume", &request, &reply);
    if (error)
        return error;
    if (client->as_json) {
        client_print_json(reply, MESSAGE_JSON_PRETTY);
        return NULL;
    }
    table_print_fact("device", reply->device);
    table_print_fact("scsi", reply->scsi);
    return NULL;
}

static const struct command map_command = {
    .name = "map",
    .summary = "map a volume as a block device of the host",
    .words = "VOLUME",
    .help = "Maps a volume as a block device of the controller's host, and prints how to find it "
            "below\n/sys/dev/block: a part of the link's target, and the SCSI target and LUN, if "
            "any.\nThe volume is a block device in memory created by `skycap oim provision`, or a "
            "Ceph image.",
    .flags = map_flags,
    .run = map,
};

/* ---- the others, whose replies are empty ---- */

static void
print_done(const struct client *client, const void *reply, const char *what)
{
    if (client->as_json)
        client_print_json(reply, MESSAGE_JSON_PRETTY);
    else
        printf("%s %s\n", client->words[0], what);
}

static struct error *
unmap(struct client *client)
{
    Oim__V0__UnmapVolumeRequest request = OIM__V0__UNMAP_VOLUME_REQUEST__INIT;
    Oim__V0__UnmapVolumeReply *reply;
    request.volume_id = client->words[0];
    struct error *error = ask(client, "oim.v0.Controller/UnmapVolume", &request, &reply);
    if (!error)
        print_done(client, reply, "is unmapped");
    return error;
}

static const struct command unmap_command = {
    .name = "unmap",
    .summary = "undo a mapping",
    .words = "VOLUME",
    .help = "Removes the volume's block device from the controller's host. A volume in memory "
            "keeps its data.\nSucceeds if it is not mapped.",
    .flags = controller_flags,
    .run = unmap,
};

static struct error *
provision(struct client *client)
{
    Oim__V0__ProvisionMallocBDevRequest request = OIM__V0__PROVISION_MALLOC_BDEV_REQUEST__INIT;
    Oim__V0__ProvisionMallocBDevReply *reply;
    request.bdev_name = client->words[0];
    struct error *error = error_wrap(size_text_parse(client->words[1], &request.size), "SIZE");
    if (!error)
        error = ask(client, "oim.v0.Controller/ProvisionMallocBDev", &request, &reply);
    if (!error)
        print_done(client, reply, request.size ? "exists" : "is deleted");
    return error;
}

static const struct command provision_command = {
    .name = "provision",
    .summary = "create or delete a block device in memory",
    .words = "NAME SIZE",
    .help = "Creates a block device in memory of a SIZE such as 64Mi, a multiple of 512 bytes; 0 "
            "deletes it.\nSucceeds if it already exists with this size, or is already deleted.",
    .flags = controller_flags,
    .run = provision,
};

static struct error *
check(struct client *client)
{
    Oim__V0__CheckMallocBDevRequest request = OIM__V0__CHECK_MALLOC_BDEV_REQUEST__INIT;
    Oim__V0__CheckMallocBDevReply *reply;
    request.bdev_name = client->words[0];
    struct error *error = ask(client, "oim.v0.Controller/CheckMallocBDev", &request, &reply);
    if (!error)
        print_done(client, reply, "exists");
    return error;
}

static const struct command check_command = {
    .name = "check",
    .summary = "check whether one exists",
    .words = "NAME",
    .help = "Checks whether a block device in memory of this name exists; if not, the exit code is "
            "1.",
    .flags = controller_flags,
    .run = check,
};

/* ---- all of them ---- */

const struct command oim_command = {
    .name = "oim",
    .summary = "map volumes of an accelerator",
    .help = "Works with the volumes of an OIM controller: the one at --endpoint, or, with "
            "--registry and\n--controller, one that a registry knows.",
    .below = (const struct command *const[]){&provision_command, &check_command, &map_command,
                                             &unmap_command, NULL},
};
