/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in the generated tables: see service.h. */
#include "message/service.h"

#include <string.h>

/* `name` has no leading slash: "csi.v1.Identity/Probe" or "csi.v1.Identity.Probe". */
static bool
is_name_of(const struct method *method, const char *name)
{
    const char *path = method->path + 1;
    size_t service_size = strcspn(path, "/");
    return !strncmp(path, name, service_size) &&
           (name[service_size] == '/' || name[service_size] == '.') &&
           !strcmp(path + service_size + 1, name + service_size + 1);
}

static bool
is_method(const struct method *method, const char *name)
{
    return name[0] == '/' ? !strcmp(method->path, name) : is_name_of(method, name);
}

const struct method *
service_find_method(const char *name)
{
    for (const struct service *const *service = all_services; *service; service++) {
        for (size_t i = 0; i < (*service)->method_count; i++) {
            if (is_method(&(*service)->methods[i], name))
                return &(*service)->methods[i];
        }
    }
    return NULL;
}

bool
service_field_is_secret(const ProtobufCMessageDescriptor *message, uint32_t field)
{
    for (const struct secret_field *secret = all_secret_fields; secret->message; secret++) {
        if (secret->message == message && secret->field == field)
            return true;
    }
    return false;
}
