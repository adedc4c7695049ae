/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the engine share: one over a store in memory and directories, and short ways to use it. */
#ifndef UNIT_VOLUMES_ENDS_H
#define UNIT_VOLUMES_ENDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "check.h"
#include "node/volume_use.h"
#include "store/store.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define PATIENCE_MS 10000

static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};

struct bench {
    char directory[64];
    struct store *store;
    struct backend *backend;
    struct engine *engine;
    struct arena arena;
    volume_capability mount;
    Csi__V1__VolumeCapability__MountVolume mount_type;
    Csi__V1__VolumeCapability__AccessMode mode;
    volume_capability *capabilities[1];
    const char *boot_id;
};

static inline void
must(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "%s\n", error->message);
    abort();
}

static inline enum code
take_code(struct error *error)
{
    enum code code = error ? error->code : CODE_OK;
    error_free(error);
    return code;
}

static inline void
open_engine(struct bench *bench)
{
    struct engine_options options = {bench->store, bench->backend, &node_volume_use, "node-1",
                                     &quiet};
    options.boot_id = bench->boot_id;
    must(engine_open(&options, &bench->engine));
}

/* Without an engine. */
static inline void
bench_open_parts(struct bench *bench)
{
    *bench = (struct bench){.directory = "/tmp/skycap-volumes-XXXXXX"};
    CHECK(mkdtemp(bench->directory) != NULL);
    must(store_open("memory:", NULL, &bench->store));
    must(backend_open("dir", &(struct backend_options){bench->directory, &quiet, 0},
                      &bench->backend));
    arena_init(&bench->arena, NULL, 0, SIZE_MAX);
    csi__v1__volume_capability__init(&bench->mount);
    csi__v1__volume_capability__mount_volume__init(&bench->mount_type);
    csi__v1__volume_capability__access_mode__init(&bench->mode);
    bench->mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    bench->mount.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    bench->mount.mount = &bench->mount_type;
    bench->mount.access_mode = &bench->mode;
    bench->capabilities[0] = &bench->mount;
}

static inline void
bench_open(struct bench *bench)
{
    bench_open_parts(bench);
    open_engine(bench);
}

static inline void
bench_close(struct bench *bench)
{
    char command[256];
    engine_close(bench->engine);
    backend_close(bench->backend);
    store_close(bench->store);
    arena_clear(&bench->arena);
    /* Snapshots are immutable where the file system can. */
    snprintf(command, sizeof command, "chattr -R -f -i '%s'; rm -rf '%s'", bench->directory,
             bench->directory);
    CHECK(system(command) == 0);
}

static inline struct volume_request
request_for(struct bench *bench, const char *name, int64_t size)
{
    return (struct volume_request){.name = name,
                                   .required_bytes = size,
                                   .capabilities = bench->capabilities,
                                   .capability_count = 1,
                                   .wait_ms = PATIENCE_MS};
}

static inline volume_record *
create(struct bench *bench, const char *name)
{
    struct volume_request request = request_for(bench, name, 0);
    volume_record *volume = NULL;
    must(volume_create(bench->engine, &request, &bench->arena, &volume));
    return volume;
}

static inline void
path_in(struct bench *bench, const volume_record *volume, const char *file, char *out, size_t size)
{
    struct data data = volume_data(volume);
    char root[4096];
    must(backend_path(bench->backend, &data, root, sizeof root));
    snprintf(out, size, "%s/%s", root, file);
}

static inline void
write_file(struct bench *bench, const volume_record *volume, const char *text)
{
    char path[5000];
    path_in(bench, volume, "file", path, sizeof path);
    FILE *file = fopen(path, "we");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static inline void
check_file(struct bench *bench, const volume_record *volume, const char *text)
{
    char path[5000];
    char found[64] = "";
    path_in(bench, volume, "file", path, sizeof path);
    FILE *file = fopen(path, "re");
    CHECK(file && fgets(found, sizeof found, file));
    if (file)
        fclose(file);
    CHECK_TEXT(found, text);
}

#endif
