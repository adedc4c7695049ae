/* SPDX-License-Identifier: Apache-2.0 */
/* Volume capabilities: see capability.h. */
#include "volumes/capability.h"

#include <string.h>

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

bool
capability_is_block(const volume_capability *capability)
{
    return capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
}

bool
capability_any_block(const volume_record *volume)
{
    for (size_t i = 0; i < volume->n_capabilities; i++)
        if (capability_is_block(volume->capabilities[i]))
            return true;
    return false;
}

/* ---- mount flags ---- */

/* The length up to the next comma outside quotes: security contexts contain commas. */
static size_t
flag_size(const char *text)
{
    bool is_quoted = false;
    size_t size = 0;
    for (; text[size] && (is_quoted || text[size] != ','); size++)
        is_quoted ^= text[size] == '"';
    return size;
}

/* Returns the number of flags in the word. `out` NULL: only counts. */
static size_t
split_word(const char *word, struct arena *arena, const char **out)
{
    size_t count = 0;
    while (*word) {
        size_t size = flag_size(word);
        if (size && out)
            out[count] = arena_copy(arena, word, size);
        count += size > 0;
        word += size + (word[size] == ',');
    }
    return count;
}

const char **
capability_mount_flags(const volume_capability *capability, struct arena *arena)
{
    const Csi__V1__VolumeCapability__MountVolume *mount = capability->mount;
    size_t count = 0;
    for (size_t i = 0; i < mount->n_mount_flags; i++)
        count += split_word(mount->mount_flags[i], NULL, NULL);
    const char **flags = arena_alloc(arena, (count + 1) * sizeof *flags);
    count = 0;
    for (size_t i = 0; i < mount->n_mount_flags; i++)
        count += split_word(mount->mount_flags[i], arena, flags + count);
    flags[count] = NULL;
    return flags;
}

static bool
has_same_flags(const volume_capability *a, const volume_capability *b)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char **first = capability_mount_flags(a, &arena);
    const char **second = capability_mount_flags(b, &arena);
    for (; *first && *second && strcmp(*first, *second) == 0; first++)
        second++;
    return !*first && !*second;
}

bool
capability_is_same(const volume_capability *a, const volume_capability *b)
{
    if (a->access_type_case != b->access_type_case || a->access_mode->mode != b->access_mode->mode)
        return false;
    if (capability_is_block(a))
        return true;
    return strcmp(a->mount->fs_type, b->mount->fs_type) == 0 &&
           strcmp(a->mount->volume_mount_group, b->mount->volume_mount_group) == 0 &&
           has_same_flags(a, b);
}

/* ---- reading only ---- */

/* The last of ro and rw wins. */
static bool
has_flag_read_only(const volume_capability *capability)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    bool is_set = false;
    if (capability_is_block(capability))
        return false;
    for (const char **flag = capability_mount_flags(capability, &arena); *flag; flag++)
        if (strcmp(*flag, "ro") == 0 || strcmp(*flag, "rw") == 0)
            is_set = (*flag)[1] == 'o';
    return is_set;
}

bool
capability_is_read_only(const volume_capability *capability)
{
    return capability->access_mode->mode == MODE(SINGLE_NODE_READER_ONLY) ||
           capability->access_mode->mode == MODE(MULTI_NODE_READER_ONLY) ||
           has_flag_read_only(capability);
}
