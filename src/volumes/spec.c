/* SPDX-License-Identifier: Apache-2.0 */
/* What a volume should be: see spec.h. */
#include "volumes/spec.h"

#include <stdlib.h>
#include <string.h>

#include "backends/format.h"
#include "volumes/io_limits.h"

#define SIDECAR_PREFIX "csi.storage.k8s.io/"

#define SECTOR_BYTES 4096

static bool
is_one_of(const char *value, const char *const *allowed)
{
    for (; *allowed; allowed++)
        if (strcmp(value, *allowed) == 0)
            return true;
    return false;
}

/* ---- the sidecars' keys ---- */

bool
spec_is_sidecar_key(const char *key)
{
    return strncmp(key, SIDECAR_PREFIX, sizeof SIDECAR_PREFIX - 1) == 0;
}

/* The first pair from `at` on that is not a sidecar's; NULL: there is none. */
static const struct text_pair *
next_pair(const struct text_map *map, size_t *at)
{
    while (*at < map->count && spec_is_sidecar_key(map->pairs[*at].key))
        ++*at;
    return *at < map->count ? &map->pairs[(*at)++] : NULL;
}

bool
spec_same_parameters(const struct text_map *a, const struct text_map *b)
{
    size_t at_a = 0, at_b = 0;
    for (;;) {
        const struct text_pair *one = next_pair(a, &at_a);
        const struct text_pair *other = next_pair(b, &at_b);
        if (!one || !other)
            return one == other;
        if (strcmp(one->key, other->key) != 0 || strcmp(one->value, other->value) != 0)
            return false;
    }
}

/* ---- parameters ---- */

/* The error names all that there are. */
static struct error *
refuse_key(const struct parameter *table, const char *key)
{
    struct buffer known AUTO(buffer_clear) = {0};
    parameter_table_print_keys(table, &known);
    return error_new(CODE_INVALID_ARGUMENT, "unknown parameter \"%s\": known are %s", key,
                     buffer_text(&known));
}

static struct error *
check_parameter(const struct parameter *table, const struct text_pair *pair, bool must_be_mutable)
{
    int64_t ignored;
    const struct parameter *parameter = parameter_table_find(table, pair->key);
    if (spec_is_sidecar_key(pair->key))
        return NULL;
    if (!parameter)
        return refuse_key(table, pair->key);
    if (must_be_mutable && !parameter->is_mutable)
        return error_new(CODE_INVALID_ARGUMENT, "parameter \"%s\" cannot be changed", pair->key);
    if (parameter->words && !is_one_of(pair->value, parameter->words))
        return error_new(CODE_INVALID_ARGUMENT, "parameter \"%s\": \"%s\" is not allowed",
                         pair->key, pair->value);
    if (parameter->is_rate)
        return error_wrap(io_limits_read(pair->value, &ignored), "parameter \"%s\"", pair->key);
    return NULL;
}

static struct error *
check_replicas(const struct text_map *parameters)
{
    const char *value = text_map_find(parameters, PARAMETER_REPLICAS);
    char *end = NULL;
    unsigned long count = value ? strtoul(value, &end, 10) : 1;
    if (!value || (value[0] >= '0' && value[0] <= '9' && !*end && count >= 1 &&
                   count <= PARAMETER_MOST_REPLICAS))
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "parameter \"" PARAMETER_REPLICAS "\": \"%s\" is not a number from 1 to %d",
                     value, PARAMETER_MOST_REPLICAS);
}

struct error *
spec_check_snapshot(const struct text_map *parameters)
{
    struct error *error = NULL;
    for (size_t i = 0; !error && i < parameters->count; i++)
        error = check_parameter(parameter_table_of_snapshots, &parameters->pairs[i], false);
    return error ? error : check_replicas(parameters);
}

uint64_t
spec_transfer_rate(const struct text_map *parameters)
{
    const char *value = text_map_find(parameters, PARAMETER_TRANSFER_RATE);
    int64_t rate = 0;
    struct error *error AUTO(error_cleanup) = value ? io_limits_read(value, &rate) : NULL;
    return error || rate < 0 ? 0 : (uint64_t)rate;
}

bool
spec_accepts_torn_copies(const struct text_map *parameters)
{
    const char *value = text_map_find(parameters, "consistency");
    return value && strcmp(value, "files") == 0;
}

/* A directory has no device of its own that could be limited. */
static struct error *
check_io_limits(const struct text_map *map, enum volume_kind kind)
{
    if (kind == KIND_IMAGE || !io_limits_are_set(map))
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "I/O limits need a volume with a device: use the parameter kind=image, a file "
                     "system, or block access");
}

static struct error *
check_all(const struct text_map *map, bool must_be_mutable)
{
    struct error *error = NULL;
    for (size_t i = 0; i < map->count && !error; i++)
        error = check_parameter(parameter_table_of_volumes, &map->pairs[i], must_be_mutable);
    return error;
}

struct error *
spec_check_mutable(const struct text_map *map, enum volume_kind kind)
{
    struct error *error = check_all(map, true);
    return error ? error : check_io_limits(map, kind);
}

/* Mutable parameters take precedence. */
static const char *
parameter_of(const struct volume_request *request, const char *key)
{
    const char *value = text_map_find(&request->mutable_parameters, key);
    return value ? value : text_map_find(&request->parameters, key);
}

/* ---- kind and file system ---- */

static const char *const file_systems[] = {"ext4", "xfs", "btrfs", NULL};

static struct error *
choose_file_system(const struct volume_request *request, const char **fs_type)
{
    *fs_type = "";
    for (size_t i = 0; i < request->capability_count; i++) {
        const volume_capability *capability = request->capabilities[i];
        if (capability->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
            continue;
        const char *wanted = capability->mount->fs_type;
        if (!wanted[0] || strcmp(wanted, "none") == 0)
            continue;
        if (!is_one_of(wanted, file_systems))
            return error_new(CODE_INVALID_ARGUMENT,
                             "fs_type \"%s\": use ext4, xfs, btrfs, or none for a directory",
                             wanted);
        if ((*fs_type)[0] && strcmp(*fs_type, wanted) != 0)
            return error_new(CODE_INVALID_ARGUMENT, "one volume cannot be both %s and %s", *fs_type,
                             wanted);
        *fs_type = wanted;
    }
    return NULL;
}

static bool
wants_block(const struct volume_request *request)
{
    for (size_t i = 0; i < request->capability_count; i++)
        if (request->capabilities[i]->access_type_case ==
            CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
            return true;
    return false;
}

static struct error *
choose_kind(const struct volume_request *request, struct volume_spec *spec)
{
    struct error *error = choose_file_system(request, &spec->fs_type);
    if (error)
        return error;
    bool needs_image = spec->fs_type[0] || wants_block(request);
    const char *asked = text_map_find(&request->parameters, "kind");
    if (asked && strcmp(asked, "tree") == 0 && needs_image)
        return error_new(CODE_INVALID_ARGUMENT,
                         "kind \"tree\" has neither block access nor a file system of its own");
    spec->kind = needs_image || (asked && strcmp(asked, "image") == 0) ? KIND_IMAGE : KIND_TREE;
    if (spec->kind == KIND_IMAGE && !spec->fs_type[0] && !wants_block(request))
        spec->fs_type = "ext4";
    return NULL;
}

static struct error *
choose_sectors(const struct volume_request *request, struct volume_spec *spec)
{
    const char *asked = text_map_find(&request->parameters, "sector-size");
    if (asked && spec->kind == KIND_TREE)
        return error_new(CODE_INVALID_ARGUMENT,
                         "sector-size needs a volume with a device: use the parameter kind=image, "
                         "a file system, or block access");
    spec->sector_bytes = !asked ? 0 : strcmp(asked, "512") == 0 ? 512 : SECTOR_BYTES;
    return NULL;
}

/* ---- size ---- */

static int64_t
round_to_sectors(int64_t size, int64_t limit)
{
    int64_t up = (size + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    return limit && up > limit ? up - SECTOR_BYTES : up;
}

struct error *
spec_choose_size(enum volume_kind kind, int64_t required_bytes, int64_t limit_bytes,
                 int64_t least_bytes, int64_t usual_bytes, int64_t *out)
{
    int64_t size = required_bytes ? required_bytes : usual_bytes;
    if (!size) /* it would have no limit at all */
        size = limit_bytes < SPEC_LARGEST_BYTES ? limit_bytes : SPEC_LARGEST_BYTES;
    if (size < least_bytes)
        size = least_bytes;
    if (limit_bytes && !required_bytes && size > limit_bytes && limit_bytes >= least_bytes)
        size = limit_bytes;
    if (limit_bytes && size > limit_bytes)
        return error_new(CODE_OUT_OF_RANGE, "%jd bytes are needed, and the limit is %jd",
                         (intmax_t)size, (intmax_t)limit_bytes);
    if (size > SPEC_LARGEST_BYTES)
        return error_new(CODE_OUT_OF_RANGE, "%jd bytes are more than a volume can have (%jd)",
                         (intmax_t)size, (intmax_t)SPEC_LARGEST_BYTES);
    *out = kind == KIND_IMAGE ? round_to_sectors(size, limit_bytes) : size;
    if (*out < required_bytes || *out < least_bytes)
        return error_new(CODE_OUT_OF_RANGE,
                         "a device has a multiple of %d bytes: there is none within the limits",
                         SECTOR_BYTES);
    return NULL;
}

/* An image holds at least its source's data, or what its file system needs. */
static int64_t
least_image_bytes(const char *fs_type, int64_t source_bytes)
{
    int64_t least = fs_type[0] ? (int64_t)format_smallest_bytes(fs_type) : 0;
    if (least < SPEC_SMALLEST_IMAGE_BYTES)
        least = SPEC_SMALLEST_IMAGE_BYTES;
    return source_bytes > least ? source_bytes : least;
}

static struct error *
choose_size(const struct volume_request *request, int64_t source_bytes, struct volume_spec *spec)
{
    bool image = spec->kind == KIND_IMAGE;
    int64_t least = image ? least_image_bytes(spec->fs_type, source_bytes) : source_bytes;
    int64_t usual = source_bytes ? source_bytes : image ? SPEC_DEFAULT_IMAGE_BYTES : 0;
    return spec_choose_size(spec->kind, request->required_bytes, request->limit_bytes, least, usual,
                            &spec->size_bytes);
}

struct error *
spec_make(const struct volume_request *request, int64_t source_bytes, struct volume_spec *out)
{
    *out = (struct volume_spec){.fs_type = ""};
    struct error *error = check_all(&request->parameters, false);
    if (!error)
        error = choose_kind(request, out);
    if (!error)
        error = choose_sectors(request, out);
    if (!error)
        error = check_io_limits(&request->parameters, out->kind);
    if (!error)
        error = spec_check_mutable(&request->mutable_parameters, out->kind);
    if (!error)
        error = choose_size(request, source_bytes, out);
    if (error)
        return error;
    const char *nocow = parameter_of(request, "nocow");
    out->settings = (struct data_settings){
        .size_bytes = (uint64_t)out->size_bytes,
        .compression = parameter_of(request, "compression"),
        .nocow = nocow && strcmp(nocow, "true") == 0,
    };
    return NULL;
}
