/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about snapshots of several volumes at one instant. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "facts.h"

#define MEMBERS 4u
#define TRIES 60u

static atomic_bool stop_writing;

/*
 * Counts up, volume after volume, each number durable before the next: at any instant the numbers of the volumes are n, n, ..., n-1, n-1: none is
 * larger than the one before it, and the last is at most one behind the first.
 */
static void *
write_counters(void *context)
{
    int *files = context;
    for (uint64_t number = 1; !atomic_load(&stop_writing); number++) {
        for (unsigned i = 0; i < MEMBERS; i++) {
            if (pwrite(files[i], &number, sizeof number, 0) != sizeof number ||
                fdatasync(files[i]) != 0)
                return "the writer could not write";
        }
    }
    return NULL;
}

static void
name_members(struct data *data, enum data_role role, const char *name, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char handle[32];
        snprintf(handle, sizeof handle, "%s-%u", name, i);
        data[i] = make_data(role, KIND_TREE, handle);
    }
}

static struct error *
snapshot_group(struct data *from, struct data *to, unsigned count)
{
    const struct data *sources[16], *snapshots[16];
    struct data_note notes[16];
    for (unsigned i = 0; i < count; i++) {
        sources[i] = &from[i];
        snapshots[i] = &to[i];
        notes[i] = (struct data_note){to[i].handle, strlen(to[i].handle)};
    }
    return backend_snapshot_group(scene.backend, sources, snapshots, notes, count);
}

static bool
is_in_order(struct data *snapshots, uint64_t *first)
{
    uint64_t numbers[MEMBERS] = {0};
    for (unsigned i = 0; i < MEMBERS; i++) {
        int fd = open(path_of(snapshots[i], "counter"), O_RDONLY);
        EXPECT(fd >= 0 && read(fd, &numbers[i], sizeof numbers[i]) >= 0);
        close(fd);
        if (i && (numbers[i] > numbers[i - 1] || numbers[i] + 1 < numbers[0]))
            return false;
    }
    *first = numbers[0];
    return true;
}

static void
take_groups(struct data *volumes)
{
    unsigned disordered = 0;
    uint64_t last = 0, number = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        struct data snapshots[MEMBERS];
        name_members(snapshots, ROLE_SNAPSHOT, "cut", MEMBERS);
        if (!SUCCEEDS(snapshot_group(volumes, snapshots, MEMBERS)))
            return;
        disordered += !is_in_order(snapshots, &number);
        EXPECT(number >= last);
        last = number;
        for (unsigned j = 0; j < MEMBERS; j++)
            SUCCEEDS(drop(snapshots[j]));
    }
    EXPECT(disordered == 0);
    EXPECT(last > 0);
}

static void
a_group_is_cut_at_one_instant(void)
{
    struct data volumes[MEMBERS];
    int files[MEMBERS];
    pthread_t writer;
    void *problem = NULL;
    name_members(volumes, ROLE_VOLUME, "member", MEMBERS);
    if (!scene.backend->ops->snapshot_group) {
        FAILS(CODE_UNIMPLEMENTED, snapshot_group(volumes, volumes, MEMBERS));
        return;
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        SUCCEEDS(create(volumes[i], 64 * MIB));
        files[i] = open(path_of(volumes[i], "counter"), O_RDWR | O_CREAT, 0644);
    }
    atomic_store(&stop_writing, false);
    EXPECT(pthread_create(&writer, NULL, write_counters, files) == 0);
    take_groups(volumes);
    atomic_store(&stop_writing, true);
    pthread_join(writer, &problem);
    EXPECT(!problem);
    for (unsigned i = 0; i < MEMBERS; i++) {
        close(files[i]);
        SUCCEEDS(drop(volumes[i]));
    }
}

static void
a_group_is_all_or_none(void)
{
    struct data volumes[3], snapshots[3];
    if (!scene.backend->ops->snapshot_group) {
        scene.not_for_this = "it has no group snapshots";
        return;
    }
    name_members(volumes, ROLE_VOLUME, "member", 3);
    name_members(snapshots, ROLE_SNAPSHOT, "cut", 3);
    SUCCEEDS(create(volumes[0], 0));
    SUCCEEDS(create(volumes[1], 0));
    FAILS(CODE_NOT_FOUND, snapshot_group(volumes, snapshots, 3));
    for (unsigned i = 0; i < 3; i++)
        EXPECT(path_of(snapshots[i], NULL)[0] == 0);
    FAILS(CODE_INVALID_ARGUMENT, snapshot_group(volumes, volumes, 2));
    SUCCEEDS(create(volumes[2], 0));
    EXPECT(put_text(path_of(volumes[2], "file"), "first"));
    SUCCEEDS(snapshot_group(volumes, snapshots, 3));
    EXPECT(put_text(path_of(volumes[2], "file"), "second"));
    SUCCEEDS(snapshot_group(volumes, snapshots, 3));
    EXPECT(has_text(path_of(snapshots[2], "file"), "second"));
    char note[BACKEND_HANDLE_SIZE] = "";
    size_t size = 0;
    SUCCEEDS(backend_read_note(scene.backend, &snapshots[1], note, sizeof note - 1, &size));
    EXPECT(size == strlen(note) && !strcmp(note, snapshots[1].handle));
    for (unsigned i = 0; i < 3; i++) {
        SUCCEEDS(drop(snapshots[i]));
        SUCCEEDS(drop(volumes[i]));
    }
}

const struct fact facts_of_groups[] = {
    {"a group is cut at one instant, or refused", a_group_is_cut_at_one_instant},
    {"a group is all or none", a_group_is_all_or_none},
    {NULL, NULL},
};
