/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of connection files: see directory.h.
 *
 * DESIGN. An inotify event only means that something may have changed; the caller then reads all
 * files and compares. So events need not be interpreted, a lost event does no harm, and the links
 * through `..data` of Kubernetes need no special case. The path is also checked at intervals,
 * because no event says that the directory itself was replaced (a link in the path, a mount). A
 * watch on its parent was rejected: that can be replaced as well.
 */
#include "connections/config/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "connections/config/spec.h"

#define QUIET_MS 50          /* without an event: the writers are done */
#define LONGEST_NOISE_MS 500 /* the longest wait for that */
#define LOOK_MS 5000         /* interval of checks of a watched directory */
#define LOOK_UNWATCHED_MS 1000

#define WATCHED                                                                                    \
    (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |            \
     IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define LOSSES (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

struct directory {
    char *path;
    int wake;    /* eventfd */
    int inotify; /* -1: not available */
    int watch;   /* -1: there is no watch now */
    bool is_there;
    dev_t device; /* of the watched directory */
    ino_t node;
};

enum notice { NOTICE_NONE, NOTICE_CHANGE, NOTICE_WAKE };

/* ---- the watch ---- */

static void
drop_watch(struct directory *directory)
{
    if (directory->watch >= 0)
        inotify_rm_watch(directory->inotify, directory->watch);
    directory->watch = -1;
}

/* If the system has no watches left, only the intervals remain. */
static void
set_watch(struct directory *directory)
{
    if (directory->inotify < 0)
        directory->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (directory->inotify >= 0)
        directory->watch = inotify_add_watch(directory->inotify, directory->path, WATCHED);
}

/*
 * Watches the directory that the path leads to now. True: it is another directory, or it is gone,
 * or the watch is new, so that changes before it may have been missed. The directory is identified
 * before it is watched: if it is replaced in between, the next check notices.
 */
static bool
look(struct directory *directory)
{
    struct stat now;
    bool is_there = stat(directory->path, &now) == 0 && S_ISDIR(now.st_mode);
    bool is_same =
        is_there == directory->is_there &&
        (!is_there || (now.st_dev == directory->device && now.st_ino == directory->node));
    if (is_same && (!is_there || directory->watch >= 0))
        return false;
    drop_watch(directory);
    directory->is_there = is_there;
    if (is_there) {
        directory->device = now.st_dev;
        directory->node = now.st_ino;
        set_watch(directory);
    }
    return !is_same || directory->watch >= 0;
}

static struct error *
refuse(const char *path, int errnum)
{
    struct error *error = error_from_errno(errnum, "the directory of connections %s", path);
    error->code = CODE_INVALID_ARGUMENT;
    return error;
}

struct error *
directory_open(const char *path, struct directory **out)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return refuse(path, errno);
    if (!S_ISDIR(found.st_mode))
        return refuse(path, ENOTDIR);
    int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0)
        return error_from_errno(errno, "watch %s", path);
    struct directory *directory = memory_zeroed(sizeof *directory);
    directory->path = memory_string(path);
    directory->wake = wake;
    directory->inotify = -1;
    directory->watch = -1;
    look(directory);
    *out = directory;
    return NULL;
}

void
directory_close(struct directory *directory)
{
    if (!directory)
        return;
    if (directory->inotify >= 0)
        close(directory->inotify);
    close(directory->wake);
    free(directory->path);
    free(directory);
}

void
directory_wake(struct directory *directory)
{
    uint64_t one = 1;
    ssize_t ignored = write(directory->wake, &one, sizeof one);
    (void)ignored; /* fails only if the wake-up is already pending */
}

/* ---- waiting ---- */

/* Reads the events; true if one is about the current watch. */
static bool
take_events(struct directory *directory)
{
    _Alignas(struct inotify_event) char bytes[4096];
    bool has_changed = false;
    ssize_t size;
    while ((size = read(directory->inotify, bytes, sizeof bytes)) > 0)
        for (char *next = bytes; next < bytes + size;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)next;
            next += sizeof *event + event->len;
            if (event->wd != directory->watch && !(event->mask & IN_Q_OVERFLOW))
                continue;
            has_changed = true;
            if (event->mask & LOSSES)
                drop_watch(directory);
        }
    return has_changed;
}

static enum notice
wait_once(struct directory *directory, uint64_t until_ms)
{
    uint64_t now = clock_now_ms(), ignored;
    struct pollfd files[] = {{.fd = directory->wake, .events = POLLIN},
                             {.fd = directory->inotify, .events = POLLIN}};
    int timeout = until_ms > now ? (int)(until_ms - now < INT_MAX ? until_ms - now : INT_MAX) : 0;
    if (poll(files, COUNT_OF(files), timeout) <= 0)
        return NOTICE_NONE;
    if (files[0].revents && read(directory->wake, &ignored, sizeof ignored) > 0)
        return NOTICE_WAKE;
    return files[1].revents && take_events(directory) ? NOTICE_CHANGE : NOTICE_NONE;
}

static void
wait_until_quiet(struct directory *directory)
{
    uint64_t now = clock_now_ms(), end = now + LONGEST_NOISE_MS;
    while (now < end) {
        uint64_t quiet = now + QUIET_MS;
        if (wait_once(directory, quiet < end ? quiet : end) != NOTICE_CHANGE)
            return;
        now = clock_now_ms();
    }
}

void
directory_wait(struct directory *directory, uint32_t timeout_ms)
{
    uint64_t now = clock_now_ms(), end = now + timeout_ms;
    enum notice notice = look(directory) ? NOTICE_CHANGE : NOTICE_NONE;
    do {
        uint64_t next_look = now + (directory->watch >= 0 ? LOOK_MS : LOOK_UNWATCHED_MS);
        if (notice == NOTICE_NONE)
            notice = wait_once(directory, next_look < end ? next_look : end);
        if (notice == NOTICE_NONE && look(directory))
            notice = NOTICE_CHANGE;
        now = clock_now_ms();
    } while (notice == NOTICE_NONE && now < end);
    if (notice == NOTICE_CHANGE)
        wait_until_quiet(directory);
}

/* ---- reading ---- */

static void
close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void
close_listing(DIR **listing)
{
    if (*listing)
        closedir(*listing);
}

/* The length of the name without .yaml or .yml; 0: it has neither. */
static size_t
stem_size(const char *file)
{
    static const char *const ends[] = {".yaml", ".yml"};
    size_t size = strlen(file);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        size_t end = strlen(ends[i]);
        if (size > end && strcmp(file + size - end, ends[i]) == 0)
            return size - end;
    }
    return 0;
}

/* A file name may hold any bytes; messages must be valid text. */
static const char *
printable(struct arena *arena, const char *text)
{
    char *copy = arena_string(arena, text);
    for (size_t at = 0, size = strlen(copy); at < size;) {
        uint32_t character = 0;
        size_t step = utf8_decode(copy + at, size - at, &character);
        if (!step || character < 0x20 || (character >= 0x7f && character < 0xa0))
            memset(copy + at, '?', step ? step : 1);
        at += step ? step : 1;
    }
    return copy;
}

static const char *
trouble_of_errno(struct arena *arena, int errnum)
{
    char text[128];
    return arena_print(arena, "it cannot be read: %s", strerror_r(errnum, text, sizeof text));
}

/* The caller has checked that it is a regular file, but it may have been replaced since. */
static const char *
read_open_file(int fd, struct arena *arena, struct directory_file *out)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct stat found;
    if (fstat(fd, &found) != 0)
        return trouble_of_errno(arena, errno);
    if (!S_ISREG(found.st_mode))
        return "it is no regular file";
    while (text.size <= SPEC_MAX_FILE_BYTES && found.st_size <= SPEC_MAX_FILE_BYTES) {
        ssize_t got = read(fd, buffer_reserve(&text, 4096), 4096);
        if (got < 0 && errno != EINTR)
            return trouble_of_errno(arena, errno);
        if (got == 0)
            break;
        text.size += got > 0 ? (size_t)got : 0;
    }
    if (text.size > SPEC_MAX_FILE_BYTES || found.st_size > SPEC_MAX_FILE_BYTES)
        return arena_print(arena, "it is larger than %u KiB", SPEC_MAX_FILE_BYTES >> 10);
    out->text = arena_copy(arena, text.bytes, text.size);
    out->size = text.size;
    return NULL;
}

/* Returns what is wrong, or NULL. *is_there is false if not even a link has that name. */
static const char *
read_content(int parent, const char *path, struct arena *arena, struct directory_file *out,
             bool *is_there)
{
    struct stat found;
    if (fstatat(parent, path, &found, 0) != 0) {
        int failed = errno;
        *is_there = failed != ENOENT || fstatat(parent, path, &found, AT_SYMLINK_NOFOLLOW) == 0;
        return failed == ENOENT && *is_there ? "it is a link to something that is not there"
                                             : trouble_of_errno(arena, failed);
    }
    if (!S_ISREG(found.st_mode))
        return "it is no regular file";
    int fd AUTO(close_file) = openat(parent, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 ? read_open_file(fd, arena, out) : trouble_of_errno(arena, errno);
}

/* `entry` is the last part of the path. */
static bool
read_entry(int parent, const char *path, const char *entry, struct arena *arena,
           struct directory_file *out)
{
    bool is_there = true;
    const char *name = arena_copy(arena, entry, stem_size(entry));
    struct error *error AUTO(error_cleanup) = spec_check_name(name);
    out->file = printable(arena, path);
    out->name = printable(arena, name);
    if (error)
        out->trouble = arena_string(arena, error->message);
    else
        out->trouble = read_content(parent, path, arena, out, &is_there);
    return is_there;
}

void
directory_read_file(const char *path, struct arena *arena, struct directory_file *out)
{
    const char *slash = strrchr(path, '/');
    const char *entry = slash ? slash + 1 : path;
    *out = (struct directory_file){0};
    if (stem_size(entry)) {
        read_entry(AT_FDCWD, path, entry, arena, out);
        return;
    }
    out->file = printable(arena, path);
    out->name = printable(arena, entry);
    out->trouble = "the name of a connection's file ends with .yaml";
}

static int
compare_files(const void *left, const void *right)
{
    const struct directory_file *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->file, b->file);
}

/* If there are x.yaml and x.yml, neither is used. */
static void
refuse_twins(struct directory_files *files, struct arena *arena)
{
    for (size_t i = 1; i < files->count; i++) {
        struct directory_file *a = &files->items[i - 1], *b = &files->items[i];
        if (strcmp(a->name, b->name) != 0)
            continue;
        a->trouble = b->trouble =
            arena_print(arena, "%s and %s are both there: remove one", a->file, b->file);
        a->text = b->text = NULL;
        a->size = b->size = 0;
    }
}

static struct error *
read_listing(struct directory *directory, DIR *listing, struct arena *arena,
             struct directory_files *out)
{
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(listing))) {
        if (entry->d_name[0] == '.' || !stem_size(entry->d_name))
            continue;
        if (out->count == DIRECTORY_MAX_FILES)
            return error_new(CODE_RESOURCE_EXHAUSTED, "%s has more than %d connection files",
                             directory->path, DIRECTORY_MAX_FILES);
        struct directory_file *file = &out->items[out->count];
        *file = (struct directory_file){0};
        out->count += read_entry(dirfd(listing), entry->d_name, entry->d_name, arena, file);
    }
    return errno ? error_from_errno(errno, "read the directory %s", directory->path) : NULL;
}

struct error *
directory_read(struct directory *directory, struct arena *arena, struct directory_files *out)
{
    struct directory_files files = {
        .items = arena_alloc(arena, DIRECTORY_MAX_FILES * sizeof *files.items)};
    DIR *listing AUTO(close_listing) = opendir(directory->path);
    if (!listing)
        return error_from_errno(errno, "open the directory of connections %s", directory->path);
    struct error *error = read_listing(directory, listing, arena, &files);
    if (error)
        return error;
    qsort(files.items, files.count, sizeof *files.items, compare_files);
    refuse_twins(&files, arena);
    *out = files;
    return NULL;
}
