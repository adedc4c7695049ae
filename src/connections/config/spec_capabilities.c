/* SPDX-License-Identifier: Apache-2.0 */
/* The key `capabilities` of a connection file: see spec_capabilities.h. */
#include "connections/config/spec_capabilities.h"

static const struct capability_list {
    const char *key;
    const ProtobufCEnumDescriptor *type;
    size_t offset; /* in struct spec_capabilities */
} capability_lists[] = {
    {"controller", &csi__v1__controller_service_capability__rpc__type__descriptor,
     offsetof(struct spec_capabilities, controller)},
    {"node", &csi__v1__node_service_capability__rpc__type__descriptor,
     offsetof(struct spec_capabilities, node)},
    {"group", &csi__v1__group_controller_service_capability__rpc__type__descriptor,
     offsetof(struct spec_capabilities, group)},
    {"services", &csi__v1__plugin_capability__service__type__descriptor,
     offsetof(struct spec_capabilities, services)},
    {"expansion", &csi__v1__plugin_capability__volume_expansion__type__descriptor,
     offsetof(struct spec_capabilities, expansion)},
};
#define RPC_LISTS 3 /* the first lists, which `without:` is about */

/* The bit of a name; 0: it is unknown. UNKNOWN, number 0 of every type, is no capability. */
static uint64_t
capability_bit(const ProtobufCEnumDescriptor *type, const char *name)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    return value && value->value > 0 && value->value < 64 ? UINT64_C(1) << value->value : 0;
}

/* The names of the lists from `start` to `end`, each once. */
static void
append_capability_names(size_t start, size_t end, struct buffer *out)
{
    for (size_t list = start; list < end; list++)
        for (unsigned i = 0; i < capability_lists[list].type->n_values; i++) {
            const char *name = capability_lists[list].type->values[i].name;
            bool is_told = !capability_bit(capability_lists[list].type, name);
            for (size_t before = start; before < list; before++)
                is_told = is_told || capability_bit(capability_lists[before].type, name);
            if (!is_told)
                buffer_print(out, "%s%s", out->size ? ", " : "", name);
        }
}

static struct error *
refuse_capability(const struct setting *map, const char *key, const char *name, size_t start,
                  size_t end)
{
    struct buffer quoted AUTO(buffer_clear) = {0};
    struct buffer names AUTO(buffer_clear) = {0};
    settings_quote(&quoted, name);
    append_capability_names(start, end, &names);
    return settings_refuse_key(map, key, "%s is none of: %s", buffer_text(&quoted),
                               buffer_text(&names));
}

static struct error *
read_without(const struct setting *map, struct arena *arena, struct connection_spec *spec)
{
    uint64_t *const places[RPC_LISTS] = {&spec->without_controller, &spec->without_node,
                                         &spec->without_group};
    struct text_list without = {0};
    struct error *error = settings_read_list(map, "without", arena, &without);
    for (size_t i = 0; i < without.count && !error; i++) {
        uint64_t found = 0;
        for (size_t list = 0; list < RPC_LISTS; list++) {
            uint64_t bit = capability_bit(capability_lists[list].type, without.items[i]);
            *places[list] |= bit;
            found |= bit;
        }
        if (!found)
            error = refuse_capability(map, "without", without.items[i], 0, RPC_LISTS);
    }
    return error;
}

static struct error *
read_fixed(const struct setting *map, size_t index, struct arena *arena,
           struct connection_spec *spec)
{
    const struct capability_list *list = &capability_lists[index];
    uint64_t *bits = (uint64_t *)(void *)((char *)&spec->capabilities + list->offset);
    struct text_list names = {0};
    struct error *error = settings_read_list(map, list->key, arena, &names);
    spec->capabilities.is_fixed |= settings_find(map, list->key) != NULL;
    for (size_t i = 0; i < names.count && !error; i++) {
        uint64_t bit = capability_bit(list->type, names.items[i]);
        *bits |= bit;
        if (!bit)
            error = refuse_capability(map, list->key, names.items[i], index, index + 1);
    }
    return error;
}

struct error *
spec_capabilities_read(const struct setting *root, struct arena *arena,
                       struct connection_spec *spec)
{
    static const char *const known[] = {"controller", "node",    "group", "services",
                                        "expansion",  "without", NULL};
    const struct setting *map = NULL;
    struct error *error = settings_read_part(root, "capabilities", SETTING_MAP, &map);
    if (!error)
        error = settings_check_keys(map, known);
    for (size_t i = 0; i < COUNT_OF(capability_lists) && !error; i++)
        error = read_fixed(map, i, arena, spec);
    if (spec->capabilities.controller)
        spec->capabilities.services |=
            UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE;
    if (spec->capabilities.group)
        spec->capabilities.services |=
            UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE;
    return error ? error : read_without(map, arena, spec);
}
