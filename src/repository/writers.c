/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of writers: see writers.h. */
#include "repository/writers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "repository/bytes.h"
#include "repository/roster.h"

#define BOOT_BYTES 36u
#define HOST_BYTES 64u
/* Role (4), process (4), its start (8), its pid namespace (8), two Unix times (16), boot, host. */
#define BODY_BYTES (40u + BOOT_BYTES + HOST_BYTES)

/* Which process on which machine. */
struct place {
    uint32_t pid;
    uint64_t start; /* of the process, in ticks since the boot */
    uint64_t space; /* the pid namespace */
    char boot[BOOT_BYTES + 1];
};

/* 0: there is no such process. */
static uint64_t
find_start(uint32_t pid)
{
    char path[32], line[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (files_read_line(path, line, sizeof line) != 0)
        return 0;
    /* The name of the program, in parentheses, may have any characters. */
    char *at = strrchr(line, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void
find_place(struct place *out)
{
    struct stat status;
    memset(out, 0, sizeof *out);
    out->pid = (uint32_t)getpid();
    out->start = find_start(out->pid);
    if (stat("/proc/self/ns/pid", &status) == 0)
        out->space = status.st_ino;
    if (files_read_line("/proc/sys/kernel/random/boot_id", out->boot, sizeof out->boot) != 0)
        out->boot[0] = 0;
}

/* ---- our own ---- */

static struct error *
put(struct repository *repository, struct writers_own *own)
{
    uint8_t body[BODY_BYTES] = {0};
    struct place place;
    struct buffer object AUTO(buffer_clear) = {0};
    uint64_t now = clock_boot_ms();
    find_place(&place);
    bytes_set32(body, own->role);
    bytes_set32(body + 4, place.pid);
    bytes_set64(body + 8, place.start);
    bytes_set64(body + 16, place.space);
    bytes_set64(body + 24, own->started_ms);
    bytes_set64(body + 32, (uint64_t)clock_unix_ms());
    memcpy(body + 40, place.boot, BOOT_BYTES);
    if (gethostname((char *)body + 40 + BOOT_BYTES, HOST_BYTES - 1) != 0)
        body[40 + BOOT_BYTES] = 0;
    struct error *error =
        repository_seal(repository->sealing, OBJECT_WRITER, body, sizeof body, &object);
    if (!error)
        error = objects_put(repository->objects, OBJECT_WRITER, &own->name, object.bytes,
                            object.size, OBJECTS_REPLACE);
    if (!error)
        own->refreshed_at = now;
    return error;
}

struct error *
writers_register(struct repository *repository, enum writers_role role, struct writers_own *out)
{
    *out = (struct writers_own){.role = role, .started_ms = (uint64_t)clock_unix_ms()};
    struct error *error = roster_enter(repository->roster, &out->name);
    return error ? error : put(repository, out);
}

/*
 * Half of the time after which others take it for dead is left for clocks that differ, and for the
 * time between this check and what follows it.
 */
struct error *
writers_check(struct repository *repository, const struct writers_own *own)
{
    uint64_t size;
    struct error *error = NULL;
    if (clock_boot_ms() - own->refreshed_at < WRITERS_STALE_MS / 2)
        error = objects_size(repository->objects, OBJECT_WRITER, &own->name, &size);
    else
        error = error_new(CODE_NOT_FOUND, "quiet for too long");
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        error = error_new(CODE_ABORTED, "this writer was quiet for so long that it is taken for "
                                        "dead: begin again; what it stored is used again");
    }
    return error;
}

struct error *
writers_refresh(struct repository *repository, struct writers_own *own)
{
    if (clock_boot_ms() - own->refreshed_at < WRITERS_REFRESH_MS)
        return NULL;
    struct error *error = writers_check(repository, own);
    return error ? error : put(repository, own);
}

struct error *
writers_end(struct repository *repository, const struct writers_own *own)
{
    roster_leave(repository->roster, &own->name);
    return objects_delete(repository->objects, OBJECT_WRITER, &own->name);
}

/* ---- all ---- */

struct listing {
    struct repository *repository;
    struct place here;
    struct buffer body;
    struct error *(*each)(const struct writers_found *writer, void *context);
    void *context;
};

/* Also one whose process is there: it gives up by itself long before, if it is still at work. */
static bool
is_stale(int64_t refreshed_ms)
{
    return clock_unix_ms() - refreshed_ms > (int64_t)WRITERS_STALE_MS;
}

static bool
is_dead(const struct listing *listing, const uint8_t *body)
{
    const struct place *here = &listing->here;
    bool is_here = here->boot[0] && !memcmp(body + 40, here->boot, BOOT_BYTES) &&
                   bytes_get64(body + 16) == here->space;
    if (is_here && find_start(bytes_get32(body + 4)) != bytes_get64(body + 8))
        return true;
    return is_stale((int64_t)bytes_get64(body + 32));
}

/* A newer version may write something else: it is taken for alive. */
static void
look_at_body(const struct listing *listing, struct writers_found *writer)
{
    const uint8_t *body = listing->body.bytes;
    if (listing->body.size != BODY_BYTES)
        return;
    writer->role = bytes_get32(body) == WRITERS_PRUNE ? WRITERS_PRUNE : WRITERS_EXPORT;
    writer->is_dead = is_dead(listing, body);
}

/* An object that nobody can read tells only when it was put. Takes the error. */
static struct error *
look_at_damaged(const struct listing *listing, struct error *error, struct writers_found *writer)
{
    const struct repository *repository = listing->repository;
    uint64_t age_ms = 0;
    if (repository->log)
        log_warn(repository->log,
                 "a writer's object is damaged: prune waits for it until it is a day old",
                 LOG_TEXT("error", error->message));
    error_free(error);
    error = objects_age(repository->objects, OBJECT_WRITER, &writer->name, &age_ms);
    writer->is_dead = age_ms > WRITERS_STALE_MS;
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
look_at(const struct object_name *name, uint64_t size, void *context)
{
    struct listing *listing = context;
    struct writers_found writer = {.name = *name, .role = WRITERS_EXPORT};
    (void)size;
    writer.is_dead = roster_has_left(listing->repository->roster, name);
    if (writer.is_dead)
        return listing->each(&writer, listing->context);
    struct error *error = repository_load(listing->repository, OBJECT_WRITER, name, &listing->body);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return NULL;
    }
    if (error && error->code == CODE_DATA_LOSS)
        error = look_at_damaged(listing, error, &writer);
    else if (!error)
        look_at_body(listing, &writer);
    return error ? error : listing->each(&writer, listing->context);
}

struct error *
writers_list(struct repository *repository,
             struct error *(*each)(const struct writers_found *writer, void *context),
             void *context)
{
    struct listing listing = {.repository = repository, .each = each, .context = context};
    find_place(&listing.here);
    struct error *error = objects_list(repository->objects, OBJECT_WRITER, look_at, &listing);
    buffer_clear(&listing.body);
    return error;
}

/* ---- work that only one may do ---- */

struct meeting {
    const struct writers_own *own;
    bool has_other;
    struct buffer dead;
};

static struct error *
meet(const struct writers_found *writer, void *context)
{
    struct meeting *meeting = context;
    bool is_own = !memcmp(writer->name.bytes, meeting->own->name.bytes, sizeof writer->name.bytes);
    if (writer->is_dead)
        buffer_append(&meeting->dead, writer->name.bytes, sizeof writer->name.bytes);
    else if (writer->role == WRITERS_PRUNE && !is_own)
        meeting->has_other = true;
    return NULL;
}

struct error *
writers_begin_alone(struct repository *repository, struct writers_own *own)
{
    struct meeting meeting = {.own = own};
    struct error *error = writers_register(repository, WRITERS_PRUNE, own);
    if (!error)
        error = writers_list(repository, meet, &meeting);
    for (size_t at = 0; at < meeting.dead.size && !error; at += OBJECT_NAME_BYTES) {
        struct object_name name = objects_name_at(&meeting.dead, at);
        error = objects_delete(repository->objects, OBJECT_WRITER, &name);
    }
    buffer_clear(&meeting.dead);
    if (!error && meeting.has_other)
        error = error_new(CODE_ABORTED, "another prune or rebuild of this repository is at work: "
                                        "try again when it has ended");
    return error;
}

struct error *
writers_end_alone(struct repository *repository, const struct writers_own *own, struct error *error)
{
    struct error *ended = writers_end(repository, own);
    if (!error)
        return ended;
    error_free(ended);
    return error;
}
