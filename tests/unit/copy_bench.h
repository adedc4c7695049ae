/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over a back end whose copies wait until the test lets them go: slow_open. */
#ifndef UNIT_COPY_BENCH_H
#define UNIT_COPY_BENCH_H

#include "slow_backend.h"
#include "volumes_ends.h"

#define VOLUME_STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name
#define SNAPSHOT_STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

static const struct text_map none = {0};

static inline void
slow_open(struct bench *bench)
{
    bench_open(bench);
    engine_close(bench->engine); /* it uses the back end from its own threads */
    slow_down(bench->backend);
    open_engine(bench);
}

static inline struct volume_request
clone_of(struct bench *bench, const char *name, const char *source_handle, uint64_t wait_ms)
{
    struct volume_request request = request_for(bench, name, 0);
    request.source_kind = SOURCE_VOLUME;
    request.source_handle = source_handle;
    request.wait_ms = wait_ms;
    return request;
}

/* The handle of the only operation there is. */
static inline const char *
find_operation(struct bench *bench, operation_record **out)
{
    struct ops_page page;
    must(ops_list(bench->engine->ops, NULL, 0, &bench->arena, &page));
    CHECK_NUMBER(page.count, 1);
    *out = page.records[0];
    return page.records[0]->id;
}

static inline unsigned
count_data(struct bench *bench)
{
    unsigned count = 0;
    char command[256];
    snprintf(command, sizeof command, "find '%s' -mindepth 2 -maxdepth 2 -type d | wc -l",
             bench->directory);
    FILE *found = popen(command, "re");
    CHECK(found && fscanf(found, "%u", &count) == 1);
    if (found)
        pclose(found);
    return count;
}

static inline void
reopen(struct bench *bench)
{
    engine_close(bench->engine);
    open_engine(bench);
}

#endif
