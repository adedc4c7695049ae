/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of CSI requests: see checks.h. */
#include "csi/checks.h"

#include <limits.h>
#include <string.h>

#include "message/message_field.h"
#include "message/message_map.h"

#define MAX_TEXT 128
#define MAX_NODE_ID 256
#define MAX_LIST 4096 /* a map, or mount_flags */

struct error *
checks_present(const char *field, const char *value)
{
    return value[0] ? NULL : error_new(CODE_INVALID_ARGUMENT, "%s is missing", field);
}

static struct error *
check_length(const char *field, size_t size, size_t limit)
{
    if (size <= limit)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%s has more than %zu bytes", field, limit);
}

struct error *
checks_id(const char *field, const char *value)
{
    return value[0] ? check_length(field, strlen(value), MAX_TEXT) : checks_present(field, value);
}

struct error *
checks_node_id(const char *field, const char *value)
{
    return value[0] ? check_length(field, strlen(value), MAX_NODE_ID)
                    : checks_present(field, value);
}

/* C0 except tab, line feed and carriage return; DEL; C1, which is C2 80 to C2 9F in UTF-8. */
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

/* The size as sent, in bytes; the count if there are more entries than bytes allowed. */
static size_t
map_size(const ProtobufCMessage *request, const ProtobufCFieldDescriptor *field)
{
    const size_t *count = message_field_quantifier(request, field);
    if (*count > MAX_LIST)
        return *count;
    const void *const *entries = message_field_value(request, field);
    return message_map_size(*entries, *count);
}

struct error *
checks_maps(const ProtobufCMessage *request)
{
    const ProtobufCMessageDescriptor *type = request->descriptor;
    struct error *error = NULL;
    for (unsigned i = 0; i < type->n_fields && !error; i++)
        if (message_field_is_map(&type->fields[i]))
            error =
                check_length(type->fields[i].name, map_size(request, &type->fields[i]), MAX_LIST);
    return error;
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

static struct error *
check_mount(const Csi__V1__VolumeCapability__MountVolume *mount)
{
    size_t flags = 0;
    for (size_t i = 0; i < mount->n_mount_flags; i++)
        flags += strlen(mount->mount_flags[i]);
    struct error *error = check_length("mount_flags", flags, MAX_LIST);
    if (!error)
        error = check_length("fs_type", strlen(mount->fs_type), MAX_TEXT);
    if (!error)
        error = check_length("volume_mount_group", strlen(mount->volume_mount_group), MAX_TEXT);
    return error;
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
    return capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT
               ? check_mount(capability->mount)
               : NULL;
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

struct error *
checks_create(const Csi__V1__CreateVolumeRequest *request)
{
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_name("name", request->name);
    if (!error)
        error = checks_capabilities(request->volume_capabilities, request->n_volume_capabilities);
    if (!error)
        error = checks_capacity(request->capacity_range);
    return error;
}

struct error *
checks_stage(const Csi__V1__NodeStageVolumeRequest *request)
{
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_path("staging_target_path", request->staging_target_path);
    return error ? error : checks_capability(request->volume_capability);
}

struct error *
checks_publish(const Csi__V1__NodePublishVolumeRequest *request)
{
    struct error *error = checks_maps(&request->base);
    if (!error)
        error = checks_id("volume_id", request->volume_id);
    if (!error)
        error = checks_path("target_path", request->target_path);
    if (!error && request->staging_target_path[0])
        error = checks_path("staging_target_path", request->staging_target_path);
    return error ? error : checks_capability(request->volume_capability);
}
