/* SPDX-License-Identifier: Apache-2.0 */
/* ValidateVolumeCapabilities: see validation.h. */
#include "connections/request/validation.h"

#include "connections/request/choice.h"
#include "message/message_bytes.h"
#include "message/message_map.h"

typedef Csi__V1__ValidateVolumeCapabilitiesRequest validate_request;
typedef Csi__V1__ValidateVolumeCapabilitiesResponse validate_response;
typedef Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed confirmation;

static bool
is_validation(const ProtobufCMessage *request)
{
    return request->descriptor == &csi__v1__validate_volume_capabilities_request__descriptor;
}

const validate_request *
validation_keep(const ProtobufCMessage *request, struct arena *arena)
{
    return is_validation(request)
               ? (const validate_request *)arena_copy(arena, request, sizeof(validate_request))
               : NULL;
}

void
validation_translate_in(const struct connection *connection, ProtobufCMessage *request,
                        struct arena *arena)
{
    if (is_validation(request) && ((const validate_request *)request)->n_parameters)
        choice_merge_parameters(connection, request, arena);
}

static bool
same_parameters(const validate_request *sent, const confirmation *confirmed, struct arena *arena)
{
    struct text_map one = message_map_read(sent->parameters, sent->n_parameters, arena);
    struct text_map other = message_map_read(confirmed->parameters, confirmed->n_parameters, arena);
    return text_map_equal(&one, &other);
}

static bool
same_capabilities(const validate_request *sent, const confirmation *confirmed)
{
    if (sent->n_volume_capabilities != confirmed->n_volume_capabilities)
        return false;
    for (size_t i = 0; i < sent->n_volume_capabilities; i++)
        if (!message_bytes_equal(&sent->volume_capabilities[i]->base,
                                 &confirmed->volume_capabilities[i]->base))
            return false;
    return true;
}

void
validation_translate_out(const validate_request *asked, const ProtobufCMessage *sent_message,
                         ProtobufCMessage *reply, struct arena *arena)
{
    const validate_request *sent = (const validate_request *)sent_message;
    confirmation *confirmed = asked ? ((validate_response *)reply)->confirmed : NULL;
    if (!confirmed)
        return;
    if (same_parameters(sent, confirmed, arena)) {
        /* The maps have different entry types. */
        struct text_map parameters =
            message_map_read(asked->parameters, asked->n_parameters, arena);
        message_map_write(
            &parameters, arena,
            &csi__v1__validate_volume_capabilities_response__confirmed__parameters_entry__descriptor,
            &confirmed->parameters, &confirmed->n_parameters);
    }
    if (same_capabilities(sent, confirmed)) {
        confirmed->volume_capabilities = asked->volume_capabilities;
        confirmed->n_volume_capabilities = asked->n_volume_capabilities;
    }
}
