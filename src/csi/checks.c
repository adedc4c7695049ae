/* SPDX-License-Identifier: Apache-2.0 */
/* What every CSI request is held to: see checks.h. */
#include "csi/checks.h"

#include <limits.h>
#include <string.h>

#define MAX_TEXT 128
#define MAX_MAP 4096

struct error *
checks_present(const char *field, const char *value)
{
    return value[0] ? NULL : error_new(CODE_INVALID_ARGUMENT, "%s is missing", field);
}

struct error *
checks_id(const char *field, const char *value)
{
    if (!value[0])
        return checks_present(field, value);
    if (strlen(value) > MAX_TEXT)
        return error_new(CODE_INVALID_ARGUMENT, "%s has more than %d bytes", field, MAX_TEXT);
    return NULL;
}

/* C0 but tab, line feed and carriage return; DEL; and C1, which UTF-8 writes as C2 80 to C2 9F. */
static bool
has_control_character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    for (; *at; at++)
        if ((*at < 0x20 && *at != '\t' && *at != '\n' && *at != '\r') || *at == 0x7f ||
            (*at == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f))
            return true;
    return false;
}

struct error *
checks_name(const char *field, const char *value)
{
    struct error *error = checks_id(field, value);
    if (!error && has_control_character(value))
        error = error_new(CODE_INVALID_ARGUMENT, "%s has control characters", field);
    return error;
}

static bool
has_parent_step(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

struct error *
checks_path(const char *field, const char *value)
{
    if (!value[0])
        return checks_present(field, value);
    if (value[0] != '/' || strlen(value) >= PATH_MAX || has_parent_step(value))
        return error_new(CODE_INVALID_ARGUMENT, "%s is not an absolute path without \"..\"", field);
    return NULL;
}

struct error *
checks_map(const char *field, const struct text_map *map)
{
    size_t size = 0;
    for (size_t i = 0; i < map->count; i++)
        size += strlen(map->pairs[i].key) + strlen(map->pairs[i].value);
    if (size > MAX_MAP)
        return error_new(CODE_INVALID_ARGUMENT, "%s has more than %d bytes", field, MAX_MAP);
    return NULL;
}

struct error *
checks_capacity(const Csi__V1__CapacityRange *range)
{
    if (!range)
        return NULL;
    if (range->required_bytes < 0 || range->limit_bytes < 0)
        return error_new(CODE_INVALID_ARGUMENT, "capacity_range has a negative size");
    if (range->limit_bytes && range->required_bytes > range->limit_bytes)
        return error_new(CODE_INVALID_ARGUMENT, "capacity_range: required is more than the limit");
    return NULL;
}

struct error *
checks_capability(const Csi__V1__VolumeCapability *capability)
{
    if (!capability)
        return error_new(CODE_INVALID_ARGUMENT, "volume_capability is missing");
    if (capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET)
        return error_new(CODE_INVALID_ARGUMENT, "volume_capability says neither block nor mount");
    if (!capability->access_mode ||
        capability->access_mode->mode == CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN)
        return error_new(CODE_INVALID_ARGUMENT, "volume_capability has no access_mode");
    if (capability->access_mode->mode >
        CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_MULTI_WRITER)
        return error_new(CODE_INVALID_ARGUMENT, "access_mode %d is not known",
                         (int)capability->access_mode->mode);
    return NULL;
}

struct error *
checks_capabilities(Csi__V1__VolumeCapability *const *capabilities, size_t count)
{
    struct error *error = NULL;
    if (!count)
        return error_new(CODE_INVALID_ARGUMENT, "volume_capabilities is missing");
    for (size_t i = 0; i < count && !error; i++)
        error = checks_capability(capabilities[i]);
    return error;
}
