/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that cannot be repeated together: see stream_hazards.h. */
#include "stream/stream_hazards.h"

#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"

/* Half full at most, so that a search is short. A command has three paths of 2048 names at most. */
#define SLOTS (1u << 17)
#define PATHS_MAX (SLOTS / 2)
#define CLONED_MAX 256u

/* What has happened to a path. */
enum {
    USED = 1,       /* a command needs to find it again */
    USED_BELOW = 2, /* or something below it */
    MOVED_AWAY = 4,
    UNLINKED = 8,
    REMOVED = 16,
    GONE_BELOW = 32, /* something below it was moved away, unlinked or removed */
};

struct slot {
    uint64_t hash; /* 0: free */
    uint8_t flags;
};

/* The bytes of a file that were cloned lie between these offsets. */
struct cloned {
    uint64_t inode;
    uint64_t start;
    uint64_t end;
};

struct stream_hazards {
    size_t paths;
    size_t cloned_count;
    struct cloned cloned[CLONED_MAX];
    uint64_t last_used; /* hash: the same file is often used many times */
    struct slot slots[SLOTS];
};

/* Before these uses there must be a commit if one of the flags is set. */
static const uint8_t forbidding[STREAM_USE_COUNT] = {
    [STREAM_MAKES] = MOVED_AWAY | REMOVED,
    [STREAM_MAKES_DIR] = MOVED_AWAY | REMOVED | UNLINKED,
    [STREAM_MOVES_FROM] = USED | USED_BELOW,
    [STREAM_MOVES_TO] = USED | USED_BELOW | MOVED_AWAY | UNLINKED | REMOVED | GONE_BELOW,
    [STREAM_UNLINKS] = USED,
    [STREAM_REMOVES_DIR] = USED | USED_BELOW,
};

/* What is remembered of the path itself. A path that something is moved to can be missing later. */
static const uint8_t marks[STREAM_USE_COUNT] = {
    [STREAM_USES] = USED,        [STREAM_MAKES] = USED,
    [STREAM_MAKES_DIR] = USED,   [STREAM_MOVES_FROM] = MOVED_AWAY,
    [STREAM_UNLINKS] = UNLINKED, [STREAM_REMOVES_DIR] = REMOVED,
};

struct stream_hazards *
stream_hazards_new(void)
{
    return memory_map(sizeof(struct stream_hazards));
}

void
stream_hazards_free(struct stream_hazards *hazards)
{
    if (hazards)
        memory_unmap(hazards, sizeof *hazards);
}

void
stream_hazards_clear(struct stream_hazards *hazards)
{
    if (hazards->paths)
        memset(hazards->slots, 0, sizeof hazards->slots);
    hazards->paths = hazards->cloned_count = 0;
    hazards->last_used = 0;
}

static uint64_t
hash_path(struct stream_text path)
{
    uint64_t hash = XXH3_64bits(path.bytes, path.size);
    return hash ? hash : 1;
}

/* The slot of the path, or a free one. */
static size_t
find_slot(const struct stream_hazards *hazards, uint64_t hash)
{
    size_t i = hash % SLOTS;
    while (hazards->slots[i].hash && hazards->slots[i].hash != hash)
        i = (i + 1) % SLOTS;
    return i;
}

/* Returns whether the flags were set before. */
static bool
mark(struct stream_hazards *hazards, uint64_t hash, uint8_t flags)
{
    struct slot *slot = &hazards->slots[find_slot(hazards, hash)];
    bool is_known = (slot->flags & flags) == flags;
    hazards->paths += !slot->hash;
    slot->hash = hash;
    slot->flags |= flags;
    return is_known;
}

/* Where a directory has the flag, the directories above it have it too. */
static void
mark_above(struct stream_hazards *hazards, struct stream_text path, uint8_t flag)
{
    const char *slash;
    while ((slash = memrchr(path.bytes, '/', path.size))) {
        path.size = (size_t)(slash - path.bytes);
        if (mark(hazards, hash_path(path), flag))
            return;
    }
}

bool
stream_hazards_forbid(const struct stream_hazards *hazards, struct stream_text path,
                      enum stream_use use)
{
    return hazards->slots[find_slot(hazards, hash_path(path))].flags & forbidding[use];
}

void
stream_hazards_note(struct stream_hazards *hazards, struct stream_text path, enum stream_use use)
{
    if (!marks[use])
        return;
    uint64_t hash = hash_path(path);
    if (marks[use] == USED && hash == hazards->last_used)
        return;
    if (marks[use] == USED)
        hazards->last_used = hash;
    mark(hazards, hash, marks[use]);
    mark_above(hazards, path, marks[use] == USED ? USED_BELOW : GONE_BELOW);
}

bool
stream_hazards_forbid_change(const struct stream_hazards *hazards, uint64_t inode, uint64_t start,
                             uint64_t end)
{
    for (size_t i = 0; i < hazards->cloned_count; i++) {
        const struct cloned *cloned = &hazards->cloned[i];
        if (cloned->inode == inode && start < cloned->end && cloned->start < end)
            return true;
    }
    return false;
}

void
stream_hazards_note_clone(struct stream_hazards *hazards, uint64_t inode, uint64_t start,
                          uint64_t end)
{
    for (size_t i = 0; i < hazards->cloned_count; i++) {
        struct cloned *cloned = &hazards->cloned[i];
        if (cloned->inode == inode) {
            cloned->start = start < cloned->start ? start : cloned->start;
            cloned->end = end > cloned->end ? end : cloned->end;
            return;
        }
    }
    if (hazards->cloned_count < CLONED_MAX)
        hazards->cloned[hazards->cloned_count++] = (struct cloned){inode, start, end};
}

bool
stream_hazards_are_full(const struct stream_hazards *hazards)
{
    return hazards->paths >= PATHS_MAX || hazards->cloned_count == CLONED_MAX;
}
