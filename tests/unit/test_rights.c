/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry/rights.c: each name, what it may and what it may not. */
#include "registry/rights.h"

#include "store_ends.h"

#define PEER(...)                                                                                  \
    ((struct peer){.names = (char *[]){__VA_ARGS__},                                               \
                   .name_count = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)})

static const char *const usual[] = {"host.*", "controller.*", "node.*", "user.*", NULL};
static const char *const nobody[] = {NULL};

static void
user_admin_sets_and_reads_everything_and_is_passed_on_to_nobody(void)
{
    struct peer admin = PEER("user.admin");
    CHECK_OK(rights_check_set(&admin, "host-0/address"));
    CHECK_OK(rights_check_set(&admin, "host-0/pci"));
    CHECK_OK(rights_check_set(&admin, "anything"));
    CHECK_OK(rights_check_read(&admin, nobody, ""));
    CHECK_SAYS(rights_check_forward(&admin, "host-0"), CODE_PERMISSION_DENIED, "host.host-0");
    CHECK_CODE(rights_check_is(&admin, REGISTRY_NAME), CODE_PERMISSION_DENIED);
}

static void
a_controller_sets_its_own_address_and_nothing_else(void)
{
    struct peer controller = PEER("controller.host-0");
    CHECK_OK(rights_check_set(&controller, "host-0/address"));
    CHECK_SAYS(rights_check_set(&controller, "host-1/address"), CODE_PERMISSION_DENIED,
               "caller \"controller.host-0\" is not allowed to set \"host-1/address\"");
    CHECK_CODE(rights_check_set(&controller, "host-0/pci"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&controller, "host-0"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&controller, "host-0/address/x"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&controller, "host-0/addresses"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&controller, "host-00/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&controller, "host-/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_forward(&controller, "host-0"), CODE_PERMISSION_DENIED);
    CHECK_OK(rights_check_read(&controller, usual, ""));
}

static void
a_host_is_passed_on_to_its_own_controller_only(void)
{
    struct peer host = PEER("host.host-0");
    CHECK_OK(rights_check_forward(&host, "host-0"));
    CHECK_SAYS(rights_check_forward(&host, "host-1"), CODE_PERMISSION_DENIED,
               "caller \"host.host-0\" is not allowed to contact controller \"host-1\"");
    CHECK_CODE(rights_check_forward(&host, "host-"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_forward(&host, "host-00"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_forward(&host, ""), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&host, "host-0/address"), CODE_PERMISSION_DENIED);
    CHECK_OK(rights_check_read(&host, usual, ""));
}

static void
a_node_sets_its_own_address_reads_of_nodes_and_uses_rows(void)
{
    struct peer node = PEER("node.n-0");
    CHECK_OK(rights_check_set(&node, "nodes/n-0/address"));
    CHECK_SAYS(rights_check_set(&node, "nodes/n-1/address"), CODE_PERMISSION_DENIED,
               "caller \"node.n-0\" is not allowed to set \"nodes/n-1/address\"");
    CHECK_CODE(rights_check_set(&node, "n-0/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&node, "nodes/n-0/rack"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&node, "nodes/n-0"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&node, "nodes/n-00/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&node, "nodes/n-/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&node, "nodes/n-0/address/x"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&node, "nodes/address"), CODE_PERMISSION_DENIED);
    CHECK_OK(rights_check_read(&node, usual, ""));
    CHECK_OK(rights_check_read(&node, nobody, "nodes"));
    CHECK_OK(rights_check_read(&node, nobody, "nodes/n-1/address"));
    CHECK_CODE(rights_check_read(&node, nobody, ""), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_read(&node, nobody, "nodes-x"), CODE_PERMISSION_DENIED);
    CHECK_OK(rights_check_rows(&node));
    CHECK_CODE(rights_check_forward(&node, "n-0"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_is(&node, REGISTRY_NAME), CODE_PERMISSION_DENIED);
}

static void
rows_are_for_nodes_and_the_admin(void)
{
    struct peer admin = PEER("user.admin"), eve = PEER("user.eve"), host = PEER("host.n-0");
    struct peer controller = PEER("controller.n-0"), registry = PEER("component.registry");
    struct peer empty = PEER("node."), other = PEER("nodes.n-0"), several = PEER("x", "node.n-0");
    CHECK_OK(rights_check_rows(&admin));
    CHECK_OK(rights_check_rows(&several));
    CHECK_SAYS(rights_check_rows(&eve), CODE_PERMISSION_DENIED, "user.admin and node.ID are");
    CHECK_CODE(rights_check_rows(&host), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_rows(&controller), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_rows(&registry), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_rows(&empty), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_rows(&other), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&empty, "nodes//address"), CODE_PERMISSION_DENIED);
}

static void
the_registry_is_what_a_controller_takes_calls_of(void)
{
    struct peer registry = PEER("component.registry"), other = PEER("component.registry.x");
    CHECK_OK(rights_check_is(&registry, REGISTRY_NAME));
    CHECK_OK(rights_check_read(&registry, nobody, ""));
    CHECK_CODE(rights_check_set(&registry, "host-0/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_forward(&registry, "host-0"), CODE_PERMISSION_DENIED);
    CHECK_SAYS(rights_check_is(&other, REGISTRY_NAME), CODE_PERMISSION_DENIED,
               "component.registry");
}

static void
readers_are_names_or_beginnings_of_names(void)
{
    static const char *const one[] = {"user.eve", NULL}, *const all[] = {"*", NULL};
    struct peer eve = PEER("user.eve"), evelyn = PEER("user.evelyn"), other = PEER("else");
    CHECK_OK(rights_check_read(&eve, one, ""));
    CHECK_SAYS(rights_check_read(&evelyn, one, ""), CODE_PERMISSION_DENIED, "--registry-readers");
    CHECK_OK(rights_check_read(&evelyn, usual, ""));
    CHECK_CODE(rights_check_read(&other, usual, ""), CODE_PERMISSION_DENIED);
    CHECK_OK(rights_check_read(&other, all, ""));
    CHECK_CODE(rights_check_read(&eve, nobody, ""), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&eve, "x"), CODE_PERMISSION_DENIED);
}

static void
any_of_several_names_counts(void)
{
    struct peer peer = PEER("node7", "host.host-0", "controller.host-0");
    CHECK_OK(rights_check_forward(&peer, "host-0"));
    CHECK_OK(rights_check_set(&peer, "host-0/address"));
    CHECK_OK(rights_check_read(&peer, usual, ""));
    CHECK_CODE(rights_check_forward(&peer, "node7"), CODE_PERMISSION_DENIED);
}

static void
without_a_name_nobody_is_known(void)
{
    struct peer peer = {0};
    CHECK_SAYS(rights_check_set(&peer, "host-0/address"), CODE_UNAUTHENTICATED, "no name");
    CHECK_CODE(rights_check_read(&peer, (const char *const[]){"*", NULL}, ""),
               CODE_UNAUTHENTICATED);
    CHECK_CODE(rights_check_forward(&peer, "host-0"), CODE_UNAUTHENTICATED);
    CHECK_CODE(rights_check_is(&peer, REGISTRY_NAME), CODE_UNAUTHENTICATED);
    CHECK_CODE(rights_check_rows(&peer), CODE_UNAUTHENTICATED);
}

/* Who comes through a unix socket with a certificate is whom the certificate names. */
static void
a_unix_socket_is_right_enough_unless_there_is_a_name(void)
{
    struct peer local = {.has_credentials = true}, named = PEER("user.eve");
    named.has_credentials = true;
    CHECK_OK(rights_check_set(&local, "host-0/address"));
    CHECK_OK(rights_check_read(&local, nobody, ""));
    CHECK_OK(rights_check_forward(&local, "host-0"));
    CHECK_OK(rights_check_is(&local, REGISTRY_NAME));
    CHECK_OK(rights_check_rows(&local));
    CHECK_CODE(rights_check_rows(&named), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_set(&named, "host-0/address"), CODE_PERMISSION_DENIED);
    CHECK_CODE(rights_check_forward(&named, "host-0"), CODE_PERMISSION_DENIED);
}

int
main(void)
{
    user_admin_sets_and_reads_everything_and_is_passed_on_to_nobody();
    a_controller_sets_its_own_address_and_nothing_else();
    a_host_is_passed_on_to_its_own_controller_only();
    a_node_sets_its_own_address_reads_of_nodes_and_uses_rows();
    rows_are_for_nodes_and_the_admin();
    the_registry_is_what_a_controller_takes_calls_of();
    readers_are_names_or_beginnings_of_names();
    any_of_several_names_counts();
    without_a_name_nobody_is_known();
    a_unix_socket_is_right_enough_unless_there_is_a_name();
    return check_report("test_rights");
}
