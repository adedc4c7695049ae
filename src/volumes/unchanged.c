/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that do not change during a copy: see unchanged.h.
 *
 * A change leaves no trace if it happens in the same tick of the kernel's clock as the change
 * before it, and a long write has the time of its beginning. So anything that has changed in the
 * last moment counts as still changing. A mapped page that is written to gets a new time at the
 * first write after a sync: hence the sync at the beginning.
 *
 * Freezing the host's file system was rejected: everybody else on the host would wait too.
 */
#include "volumes/unchanged.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/clock.h"
#include "base/files.h"
#include "volumes/mount_rows.h"

#define MOMENT_NS 100000000 /* 0.1 s */
#define LONGEST_WAIT_NS 2000000000

static struct error *
measure(const char *path, bool syncs, struct tree_size *out)
{
    int top AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (top < 0)
        return error_from_errno(errno, "open %s", path);
    if (syncs && syncfs(top) != 0)
        return error_from_errno(errno, "sync %s", path);
    return tree_measure(top, out);
}

static struct error *
is_in_use(struct engine *engine, const char *handle, bool *is_used)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct mount_list rows;
    *is_used = false;
    struct error *error = mount_rows_list(engine, handle, &arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++)
        *is_used |= !rows.records[i]->read_only;
    return error;
}

struct error *
unchanged_refuse(const struct data *tree)
{
    return error_new(CODE_FAILED_PRECONDITION,
                     "the directory of the volume \"%s\" changed while it was copied, so the copy "
                     "is not of one instant: unpublish the volume, use the btrfs back end, or set "
                     "the parameter consistency=files to accept such copies",
                     tree->handle);
}

/* After the clock was set back, times in the future are not recent. */
static bool
is_recent(int64_t changed_ns)
{
    int64_t age = clock_unix_ns() - changed_ns;
    return age < MOMENT_NS && age > -MOMENT_NS;
}

struct error *
unchanged_begin(struct engine *engine, const struct data *tree, struct unchanged *out)
{
    bool is_used = false;
    struct tree_size size = {0};
    struct error *error = backend_check(backend_of(engine->backend, tree->handle));
    if (!error)
        error = backend_path(engine->backend, tree, out->path, sizeof out->path);
    if (!error)
        error = is_in_use(engine, tree->handle, &is_used);
    if (!error)
        error = measure(out->path, is_used, &size);
    uint64_t start = clock_now_ns();
    while (!error && is_used && is_recent(size.changed_ns)) {
        if (clock_now_ns() - start > LONGEST_WAIT_NS)
            return unchanged_refuse(tree);
        nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS / 4}, NULL);
        error = measure(out->path, false, &size);
    }
    out->fingerprint = error ? 0 : size.fingerprint;
    return error;
}

struct error *
unchanged_check(const struct unchanged *before, bool *is_same)
{
    struct tree_size size;
    struct error *error = measure(before->path, false, &size);
    *is_same = !error && size.fingerprint == before->fingerprint;
    return error;
}
