/* SPDX-License-Identifier: Apache-2.0 */
/* skycap oim: the volumes of an OIM controller, which is asked directly or through the registry. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/size_text.h"
#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "message/message_json.h"
#include "proto/oim.pb-c.h"
#include "registry/rights.h"

#define MAX_SECRET_BYTES 4096

/* ---- whom to ask ---- */

struct oim_client {
    struct client client;
    const char *registry;
    const char *controller;
    struct metadata metadata;
};

#define WAY_COUNT 2

static void
way_flags(struct oim_client *oim, struct option table[WAY_COUNT])
{
    table[0] = (struct option){
        "registry",     0,
        "ADDR",         OPTION_TEXT,
        &oim->registry, "ask through the registry there, instead of the controller at --endpoint"};
    table[1] = (struct option){"controller",
                               0,
                               "ID",
                               OPTION_TEXT,
                               &oim->controller,
                               "controller that the registry forwards the call to"};
}

static struct error *
choose_way(struct oim_client *oim)
{
    struct client_flags *flags = &oim->client.flags;
    if (!oim->registry != !oim->controller)
        return error_new(CODE_INVALID_ARGUMENT, "--registry and --controller go together");
    if (oim->registry && flags->endpoint)
        return error_new(CODE_INVALID_ARGUMENT, "--registry and --endpoint exclude each other");
    if (!oim->registry)
        return NULL;
    flags->endpoint = oim->registry;
    if (flags->tls.ca_file && !flags->tls_name)
        flags->tls_name = RIGHTS_REGISTRY;
    return NULL;
}

static struct error *
name_controller(struct oim_client *oim)
{
    if (!oim->controller)
        return NULL;
    oim->client.metadata = &oim->metadata;
    return error_wrap(metadata_add(&oim->metadata, &oim->client.arena, "controllerid",
                                   oim->controller, strlen(oim->controller)),
                      "--controller");
}

/* As client_open; `usage->own` ends with what way_flags has made. */
static struct error *
open_client(struct oim_client *oim, const struct client_usage *usage, int count, char **arguments,
            enum exit_code *exit_code)
{
    struct error *error = client_read_flags(&oim->client, usage, count, arguments, exit_code);
    if (error || oim->client.has_helped)
        return error;
    error = choose_way(oim);
    if (!error)
        error = client_connect(&oim->client);
    return error ? error : name_controller(oim);
}

/* The same for a command without flags of its own. */
static struct error *
open_plain(struct oim_client *oim, struct client_usage usage, int count, char **arguments,
           enum exit_code *exit_code)
{
    struct option way[WAY_COUNT];
    way_flags(oim, way);
    usage.own = way;
    usage.own_count = WAY_COUNT;
    return open_client(oim, &usage, count, arguments, exit_code);
}

static void
close_client(struct oim_client *oim)
{
    client_close(&oim->client);
}

/* ---- map ---- */

struct ceph_flags {
    const char *pool;
    const char *image;
    const char *user_id;
    const char *monitors;
    const char *secret_file;
};

/* From a file: arguments are for everybody to see. */
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
read_ceph(const struct ceph_flags *flags, struct arena *arena, Oim__V0__CephParams *out)
{
    if (!flags->pool || !flags->image)
        return error_new(CODE_INVALID_ARGUMENT,
                         "a volume of Ceph needs --ceph-pool and --ceph-image");
    out->pool = (char *)flags->pool;
    out->image = (char *)flags->image;
    if (flags->user_id)
        out->user_id = (char *)flags->user_id;
    if (flags->monitors)
        out->monitors = (char *)flags->monitors;
    return flags->secret_file ? read_secret(flags->secret_file, arena, &out->secret) : NULL;
}

static struct error *
ask_map(struct client *client, const struct ceph_flags *flags)
{
    Oim__V0__MapVolumeRequest request = OIM__V0__MAP_VOLUME_REQUEST__INIT;
    Oim__V0__MallocParams malloc_params = OIM__V0__MALLOC_PARAMS__INIT;
    Oim__V0__CephParams ceph_params = OIM__V0__CEPH_PARAMS__INIT;
    Oim__V0__MapVolumeReply *reply;
    bool is_ceph =
        flags->pool || flags->image || flags->user_id || flags->monitors || flags->secret_file;
    struct error *error = is_ceph ? read_ceph(flags, &client->arena, &ceph_params) : NULL;
    if (error)
        return error;
    request.volume_id = client->words[0];
    request.params_case = is_ceph ? OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH
                                  : OIM__V0__MAP_VOLUME_REQUEST__PARAMS_MALLOC;
    if (is_ceph)
        request.ceph = &ceph_params;
    else
        request.malloc = &malloc_params;
    error = client_ask(client, "oim.v0.Controller/MapVolume", &request, &reply);
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

static VERB(run_map)
{
    struct oim_client oim AUTO(close_client) = {0};
    struct ceph_flags ceph = {0};
    struct option own[5 + WAY_COUNT] = {
        {"ceph-pool", 0, "NAME", OPTION_TEXT, &ceph.pool,
         "the volume is a Ceph image in this pool"},
        {"ceph-image", 0, "NAME", OPTION_TEXT, &ceph.image, "the name of that image"},
        {"ceph-user", 0, "NAME", OPTION_TEXT, &ceph.user_id,
         "Ceph user; default: that of the accelerator"},
        {"ceph-monitors", 0, "HOST,...", OPTION_TEXT, &ceph.monitors,
         "addresses of the Ceph monitors"},
        {"ceph-secret-file", 0, "FILE", OPTION_TEXT, &ceph.secret_file,
         "the user's key, on the first line; - reads standard input"},
    };
    way_flags(&oim, own + 5);
    const struct client_usage usage = {
        "skycap oim map VOLUME [options]",
        "Maps a volume as a block device of the controller's host, and prints how to find it "
        "below\n/sys/dev/block: a part of the link's target, and the SCSI target and LUN, if "
        "any.\nThe volume is a block device in memory created by `skycap oim provision`, or a Ceph "
        "image.",
        own,
        COUNT_OF(own),
        1,
        1};
    struct error *error = open_client(&oim, &usage, count, arguments, exit_code);
    if (error || oim.client.has_helped)
        return error;
    return ask_map(&oim.client, &ceph);
}

/* ---- the others, which answer with nothing ---- */

static void
print_done(const struct client *client, const void *reply, const char *what)
{
    if (client->as_json)
        client_print_json(reply, MESSAGE_JSON_PRETTY);
    else
        printf("%s %s\n", client->words[0], what);
}

static VERB(run_unmap)
{
    struct oim_client oim AUTO(close_client) = {0};
    const struct client_usage usage = {
        .usage = "skycap oim unmap VOLUME [options]",
        .summary = "Removes the volume's block device from the controller's host. A volume in "
                   "memory keeps its data.\nSucceeds if it is not mapped.",
        .least_words = 1,
        .most_words = 1};
    Oim__V0__UnmapVolumeRequest request = OIM__V0__UNMAP_VOLUME_REQUEST__INIT;
    Oim__V0__UnmapVolumeReply *reply;
    struct error *error = open_plain(&oim, usage, count, arguments, exit_code);
    if (error || oim.client.has_helped)
        return error;
    request.volume_id = oim.client.words[0];
    error = client_ask(&oim.client, "oim.v0.Controller/UnmapVolume", &request, &reply);
    if (!error)
        print_done(&oim.client, reply, "is unmapped");
    return error;
}

static VERB(run_provision)
{
    struct oim_client oim AUTO(close_client) = {0};
    const struct client_usage usage = {
        .usage = "skycap oim provision NAME SIZE [options]",
        .summary =
            "Creates a block device in memory of a SIZE such as 64Mi, a multiple of 512 bytes; 0 "
            "deletes it.\nSucceeds if it already exists with this size, or is already deleted.",
        .least_words = 2,
        .most_words = 2};
    Oim__V0__ProvisionMallocBDevRequest request = OIM__V0__PROVISION_MALLOC_BDEV_REQUEST__INIT;
    Oim__V0__ProvisionMallocBDevReply *reply;
    struct error *error = open_plain(&oim, usage, count, arguments, exit_code);
    if (error || oim.client.has_helped)
        return error;
    request.bdev_name = oim.client.words[0];
    error = error_wrap(size_text_parse(oim.client.words[1], &request.size), "SIZE");
    if (!error)
        error = client_ask(&oim.client, "oim.v0.Controller/ProvisionMallocBDev", &request, &reply);
    if (!error)
        print_done(&oim.client, reply, request.size ? "exists" : "is deleted");
    return error;
}

static VERB(run_check)
{
    struct oim_client oim AUTO(close_client) = {0};
    const struct client_usage usage = {.usage = "skycap oim check NAME [options]",
                                       .summary = "Checks whether a block device in memory of this "
                                                  "name exists; if not, the exit code is 1.",
                                       .least_words = 1,
                                       .most_words = 1};
    Oim__V0__CheckMallocBDevRequest request = OIM__V0__CHECK_MALLOC_BDEV_REQUEST__INIT;
    Oim__V0__CheckMallocBDevReply *reply;
    struct error *error = open_plain(&oim, usage, count, arguments, exit_code);
    if (error || oim.client.has_helped)
        return error;
    request.bdev_name = oim.client.words[0];
    error = client_ask(&oim.client, "oim.v0.Controller/CheckMallocBDev", &request, &reply);
    if (!error)
        print_done(&oim.client, reply, "exists");
    return error;
}

/* ---- all of them ---- */

static const struct command table[] = {
    {"provision", "create or delete a block device in memory", run_provision},
    {"check", "check whether one exists", run_check},
    {"map", "map a volume as a block device of the host", run_map},
    {"unmap", "undo a mapping", run_unmap},
};

static VERB(run)
{
    static const struct verbs verbs = {
        .command = "oim",
        .summary = "Works with the volumes of an OIM controller: the one at --endpoint, or, with "
                   "--registry and\n--controller, one that a registry knows.",
        .table = table,
        .count = COUNT_OF(table),
    };
    return verbs_run(&verbs, count, arguments, exit_code);
}

const struct command oim_command = {"oim", "map volumes of an accelerator", run};
