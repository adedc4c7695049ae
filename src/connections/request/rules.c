/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of all methods: see rules.h. */
#include "connections/request/rules.h"

#include <stdio.h>
#include <string.h>

#include "message/service.h"

#define CONTROLLER(name) NEED_CONTROLLER, CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
#define NODE(name) NEED_NODE, CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name
#define GROUP                                                                                      \
    NEED_GROUP,                                                                                    \
        CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT
#define METADATA NEED_SERVICE, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__SNAPSHOT_METADATA_SERVICE

static struct error *
check_created(const struct connection *connection, const ProtobufCMessage *message)
{
    const Csi__V1__CreateVolumeResponse *reply = (const Csi__V1__CreateVolumeResponse *)message;
    if (!reply->volume || !reply->volume->volume_id[0])
        return error_new(CODE_INTERNAL,
                         "the driver behind connection \"%s\" has created a volume without an id",
                         connection->spec->name);
    return NULL;
}

/* Capacity that a driver does not tell is that of the file, by default without a limit. */
static void
fill_capacity(const struct connection *connection, ProtobufCMessage *message)
{
    Csi__V1__GetCapacityResponse *reply = (Csi__V1__GetCapacityResponse *)message;
    reply->available_capacity = connection->spec->capacity_bytes;
}

/* clang-format off */
static const struct rule rules[] = {
    {"/csi.v1.Controller/CreateVolume", CONTROLLER(CREATE_DELETE_VOLUME), .check = check_created},
    {"/csi.v1.Controller/GetCapacity", CONTROLLER(GET_CAPACITY), .lacking_is_ok = true, .fill_lacking = fill_capacity},
    {"/csi.v1.Controller/ListVolumes", CONTROLLER(LIST_VOLUMES), .lacking_is_ok = true},
    {"/csi.v1.Controller/ListSnapshots", CONTROLLER(LIST_SNAPSHOTS), .lacking_is_ok = true},
    {"/csi.v1.Controller/ControllerListVolumeHealth", CONTROLLER(LIST_VOLUME_HEALTH), .lacking_is_ok = true},
    {"/csi.v1.Controller/DeleteVolume", CONTROLLER(CREATE_DELETE_VOLUME), .unknown_id_is_ok = true, .gone_is_ok = true, .forgets_choice = true},
    {"/csi.v1.Controller/ControllerPublishVolume", CONTROLLER(PUBLISH_UNPUBLISH_VOLUME), .lacking_is_ok = true, .begins_use = true, .required = "node_id volume_capability"},
    {"/csi.v1.Controller/ControllerUnpublishVolume", CONTROLLER(PUBLISH_UNPUBLISH_VOLUME), .unknown_id_is_ok = true, .lacking_is_ok = true},
    {"/csi.v1.Controller/ControllerGetVolume", CONTROLLER(GET_VOLUME)},
    {"/csi.v1.Controller/ControllerGetVolumeHealth", CONTROLLER(GET_VOLUME_HEALTH)},
    {"/csi.v1.Controller/ControllerExpandVolume", CONTROLLER(EXPAND_VOLUME), .required = "capacity_range"},
    {"/csi.v1.Controller/ControllerModifyVolume", CONTROLLER(MODIFY_VOLUME)},
    {"/csi.v1.Controller/ValidateVolumeCapabilities", .required = "volume_capabilities"},
    {"/csi.v1.Controller/CreateSnapshot", CONTROLLER(CREATE_DELETE_SNAPSHOT), .required = "name"},
    {"/csi.v1.Controller/DeleteSnapshot", CONTROLLER(CREATE_DELETE_SNAPSHOT), .unknown_id_is_ok = true, .gone_is_ok = true},
    {"/csi.v1.Controller/GetSnapshot", CONTROLLER(GET_SNAPSHOT)},

    {"/csi.v1.GroupController/CreateVolumeGroupSnapshot", GROUP},
    {"/csi.v1.GroupController/DeleteVolumeGroupSnapshot", GROUP, .unknown_id_is_ok = true, .gone_is_ok = true},
    {"/csi.v1.GroupController/GetVolumeGroupSnapshot", GROUP},

    {"/csi.v1.SnapshotMetadata/GetMetadataAllocated", METADATA},
    {"/csi.v1.SnapshotMetadata/GetMetadataDelta", METADATA},

    {"/csi.v1.Node/NodeGetStorageHealth", NODE(GET_STORAGE_HEALTH), .lacking_is_ok = true},
    {"/csi.v1.Node/NodeStageVolume", NODE(STAGE_UNSTAGE_VOLUME), .lacking_is_ok = true, .begins_use = true, .required = "staging_target_path volume_capability"},
    {"/csi.v1.Node/NodeUnstageVolume", NODE(STAGE_UNSTAGE_VOLUME), .unknown_id_is_ok = true, .lacking_is_ok = true, .required = "staging_target_path"},
    {"/csi.v1.Node/NodePublishVolume", .may_be_inline = true, .begins_use = true, .required = "target_path volume_capability"},
    {"/csi.v1.Node/NodeUnpublishVolume", .may_be_inline = true, .required = "target_path"},
    {"/csi.v1.Node/NodeGetVolumeStats", NODE(GET_VOLUME_STATS), .may_be_inline = true, .required = "volume_path"},
    {"/csi.v1.Node/NodeGetVolumeHealth", NODE(GET_VOLUME_HEALTH), .may_be_inline = true},
    {"/csi.v1.Node/NodeExpandVolume", NODE(EXPAND_VOLUME), .required = "volume_path"},
};
/* clang-format on */

static const struct rule plain_rule = {0};

const struct rule *
rules_find(const char *path)
{
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (strcmp(rules[i].path, path) == 0)
            return &rules[i];
    return &plain_rule;
}

/* ---- capabilities ---- */

static uint64_t
offered(const struct rule *rule, const struct connection *connection)
{
    switch (rule->need) {
    case NEED_CONTROLLER:
        return connection_controller_capabilities(connection);
    case NEED_NODE:
        return connection_node_capabilities(connection);
    case NEED_GROUP:
        return connection_group_capabilities(connection);
    case NEED_SERVICE:
        return connection_services(connection);
    case NEED_NOTHING:
        break;
    }
    return UINT64_MAX;
}

struct error *
rules_unsupported_error(const struct connection *connection, const char *path)
{
    const char *name = strrchr(path, '/');
    return error_new(CODE_INVALID_ARGUMENT,
                     "the driver behind connection \"%s\" does not support %s",
                     connection->spec->name, name ? name + 1 : path);
}

bool
rules_is_supported(const struct rule *rule, const struct connection *connection,
                   struct error **error)
{
    *error = NULL;
    if (!connection_is_known(connection) || (offered(rule, connection) >> rule->capability & 1))
        return true;
    if (!rule->lacking_is_ok)
        *error = rules_unsupported_error(connection, rule->path);
    return false;
}

/* ---- required fields ---- */

static bool
has_field(const ProtobufCMessage *request, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, name);
    const char *place = (const char *)request + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)((const char *)request + field->quantifier_offset) > 0;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return (*(const char *const *)place)[0] != '\0';
    return *(const void *const *)place != NULL;
}

struct error *
rules_check_required(const struct rule *rule, const ProtobufCMessage *request)
{
    char names[64], *rest = names;
    snprintf(names, sizeof names, "%s", rule->required ? rule->required : "");
    for (char *name; (name = strsep(&rest, " "));)
        if (name[0] && !has_field(request, name))
            return error_new(CODE_INVALID_ARGUMENT, "%s is missing", name);
    return NULL;
}
