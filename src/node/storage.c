/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a data directory: see storage.h. */
#include "node/storage.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/denial.h"
#include "base/files.h"
#include "base/size_text.h"
#include "node/cgroup.h"
#include "node/volume_use.h"
#include "volumes/upkeep.h"

/* Does the directory belong to this program: is it empty, or has it the store? */
static bool
is_own(const char *path)
{
    DIR *directory = opendir(path);
    bool is_empty = true, has_store = false;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        has_store |= strcmp(entry->d_name, "state.db") == 0;
        is_empty &= entry->d_name[0] == '.' || strcmp(entry->d_name, "lost+found") == 0;
    }
    if (directory)
        closedir(directory);
    return directory && (is_empty || has_store);
}

/*
 * Others need not even see the names in it. A directory with something else in it stays as it is:
 * whatever is made in there can only be entered by its owner anyway.
 */
static struct error *
close_directory(const char *path, mode_t mode)
{
    if (!(mode & 077) || mode & S_ISVTX || !is_own(path) || chmod(path, mode & 07700) == 0)
        return NULL;
    return error_from_errno(errno, "others can read the data directory %s, run chmod go= on it",
                            path);
}

static struct error *
cannot_make(const char *path, int failed)
{
    struct error *error = error_from_errno(failed, "make the data directory %s", path);
    if (failed == EACCES && geteuid() != 0)
        return error_advise(error, "without root, give a directory of your own with --data");
    return denial_explain(error, failed);
}

static struct error *
make_directory(const char *path)
{
    struct stat found;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return cannot_make(path, errno);
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "--data %s is not a directory", path);
    return close_directory(path, found.st_mode);
}

struct error *
storage_find_directory(const char *directory, char out[PATH_MAX])
{
    struct error *error = make_directory(directory);
    if (!error && !realpath(directory, out))
        error = error_from_errno(errno, "find the data directory %s", directory);
    return error;
}

/* The absolute path of the data directory, and the address of its store. */
struct place {
    char directory[PATH_MAX];
    char store_url[PATH_MAX + sizeof "sqlite:"];
};

static struct error *
find_place(const char *directory, struct place *out)
{
    struct error *error = storage_find_directory(directory, out->directory);
    if (!error)
        snprintf(out->store_url, sizeof out->store_url, "sqlite:%s", out->directory);
    return error;
}

struct error *
storage_open_parts(const struct storage_options *options, struct storage *out)
{
    struct place place;
    int64_t pool_bytes = 0;
    struct error *error = find_place(options->directory, &place);
    if (!error && options->pool_size)
        error = error_wrap(size_text_parse(options->pool_size, &pool_bytes), "--pool-size");
    if (!error)
        error = store_open(place.store_url, NULL, &out->store);
    if (error)
        return error;
    struct backend_options parts = {
        .directory = place.directory,
        .log = options->log,
        .pool_device = options->pool_device,
        .pool_bytes = (uint64_t)pool_bytes,
        .pool_is_allocated = options->pool_is_allocated,
        .may_switch_quotas_on = options->may_switch_quotas_on,
    };
    static const char *const best[] = {"auto"};
    const struct text_list *names = &options->backends;
    return backend_open_several(names->count ? names->items : best,
                                names->count ? names->count : COUNT_OF(best), &parts,
                                &out->backend);
}

static struct error *
find_cache(const char *directory, char out[PATH_MAX])
{
    char path[PATH_MAX];
    struct error *error = storage_find_directory(directory, path);
    if (!error && snprintf(out, PATH_MAX, "%s/cache", path) >= PATH_MAX)
        error = error_from_errno(ENAMETOOLONG, "the data directory");
    return error;
}

struct error *
storage_open(const struct storage_options *options, struct storage *out)
{
    struct error *error = storage_open_parts(options, out);
    if (error)
        return error;
    if (files_read_line("/proc/sys/kernel/random/boot_id", out->boot_id, sizeof out->boot_id) != 0)
        out->boot_id[0] = '\0';
    error = find_cache(options->directory, out->cache_directory);
    if (error)
        return error;
    struct engine_options engine = {
        .store = out->store,
        .backend = out->backend,
        .use = &node_volume_use,
        .node_id = options->node_id,
        .topology = options->topology,
        .is_in_cluster = options->is_in_cluster,
        .log = options->log,
        .is_passive = options->is_passive,
        .boot_id = out->boot_id,
        .repositories = options->repositories,
        .cache_directory = out->cache_directory,
    };
    error = engine_open(&engine, &out->engine);
    if (!error && cgroup_must_renew_limits(CGROUP_ROOT))
        upkeep_renew_limits(out->engine);
    return error;
}

struct error *
storage_set_store_aside(const struct storage_options *options, struct arena *arena,
                        const char **moved_to)
{
    struct place place;
    struct error *error = find_place(options->directory, &place);
    return error ? error : store_set_aside(place.store_url, arena, moved_to);
}

void
storage_close(struct storage *storage)
{
    engine_close(storage->engine);
    backend_close(storage->backend);
    store_close(storage->store);
    *storage = (struct storage){0};
}
