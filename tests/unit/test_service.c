/* SPDX-License-Identifier: Apache-2.0 */
/* src/message/service.c, on tables of its own. */
#include "message/service.h"

#include "check.h"

static const ProtobufCMessageDescriptor one_type, other_type;

static const struct method identity_methods[] = {
    {.path = "/csi.v1.Identity/GetPluginInfo", .name = "GetPluginInfo"},
    {.path = "/csi.v1.Identity/Probe", .name = "Probe"},
};
static const struct method health_methods[] = {
    {.path = "/grpc.health.v1.Health/Check", .name = "Check"},
};
static const struct service identity = {"csi.v1.Identity", identity_methods, 2};
static const struct service health = {"grpc.health.v1.Health", health_methods, 1};

const struct service *const all_services[] = {&identity, &health, NULL};
const struct secret_field all_secret_fields[] = {{&one_type, 5}, {NULL, 0}};

static void
a_method_is_found_by_each_of_its_names(void)
{
    CHECK(service_find_method("/csi.v1.Identity/Probe") == &identity_methods[1]);
    CHECK(service_find_method("csi.v1.Identity/Probe") == &identity_methods[1]);
    CHECK(service_find_method("csi.v1.Identity.Probe") == &identity_methods[1]);
    CHECK(service_find_method("/grpc.health.v1.Health/Check") == &health_methods[0]);
}

static void
anything_else_is_not_found(void)
{
    CHECK(!service_find_method(""));
    CHECK(!service_find_method("/"));
    CHECK(!service_find_method("Probe"));
    CHECK(!service_find_method("csi.v1.Identity"));
    CHECK(!service_find_method("csi.v1.Identity/"));
    CHECK(!service_find_method("csi.v1.Identity/Prob"));
    CHECK(!service_find_method("csi.v1.Identity/Probes"));
    CHECK(!service_find_method("/csi.v1.Identity.Probe"));
    CHECK(!service_find_method("//csi.v1.Identity/Probe"));
    CHECK(!service_find_method("/csi.v1.Identity/Check"));
}

static void
a_secret_is_a_field_of_one_message(void)
{
    CHECK(service_field_is_secret(&one_type, 5));
    CHECK(!service_field_is_secret(&one_type, 4));
    CHECK(!service_field_is_secret(&other_type, 5));
}

int
main(void)
{
    a_method_is_found_by_each_of_its_names();
    anything_else_is_not_found();
    a_secret_is_a_field_of_one_message();
    return check_report("service");
}
