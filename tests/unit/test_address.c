/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/http2/address.c */
#include "rpc/http2/address.h"

#include <string.h>

#include "check.h"

static struct address
parse_good(const char *text)
{
    struct address address = {0};
    struct error *error AUTO(error_cleanup) = address_parse(text, &address);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    return address;
}

/* What is printed is canonical: it gives the same address and the same text again. */
static void
check_printed(const char *text, const struct address *address, const char *canonical)
{
    char printed[ADDRESS_TEXT_SIZE];
    address_print(address, printed, sizeof printed);
    CHECK_TEXT(printed, canonical ? canonical : text);
    struct address again = parse_good(printed);
    CHECK_NUMBER(again.kind, address->kind);
    CHECK_TEXT(again.path, address->path);
    CHECK_TEXT(again.host, address->host);
    CHECK_NUMBER(again.port, address->port);
    CHECK_NUMBER(again.path_size, address->path_size);
}

static void
check_unix(const char *text, enum address_kind kind, const char *path, const char *canonical)
{
    struct address address = parse_good(text);
    CHECK_NUMBER(address.kind, kind);
    CHECK_TEXT(address.path, path);
    CHECK_NUMBER(address.path_size, strlen(path));
    CHECK(address_is_local(&address));
    check_printed(text, &address, canonical);
}

static void
check_tcp(const char *text, const char *host, uint16_t port, const char *canonical)
{
    struct address address = parse_good(text);
    CHECK_NUMBER(address.kind, ADDRESS_TCP);
    CHECK_TEXT(address.host, host);
    CHECK_NUMBER(address.port, port);
    CHECK(!address_is_local(&address));
    check_printed(text, &address, canonical);
}

static void
check_refused(const char *text, const char *problem)
{
    struct address address = {.port = 77};
    struct error *error AUTO(error_cleanup) = address_parse(text, &address);
    CHECK(error && error->code == CODE_INVALID_ARGUMENT);
    if (!error || !strstr(error->message, problem))
        CHECK_TEXT(error ? error->message : NULL, problem);
    CHECK_NUMBER(address.port, 77);
}

static void
unix_sockets_have_many_forms(void)
{
    check_unix("unix:/run/x.sock", ADDRESS_UNIX, "/run/x.sock", NULL);
    check_unix("unix:///run/x.sock", ADDRESS_UNIX, "/run/x.sock", "unix:/run/x.sock");
    check_unix("/run/x.sock", ADDRESS_UNIX, "/run/x.sock", "unix:/run/x.sock");
    check_unix("unix:run/x.sock", ADDRESS_UNIX, "run/x.sock", NULL);
    check_unix("unix:x", ADDRESS_UNIX, "x", NULL);
    check_unix("unix://csi/csi.sock", ADDRESS_UNIX, "/csi/csi.sock", "unix:/csi/csi.sock");
    check_unix("unix:////run//x.sock", ADDRESS_UNIX, "/run//x.sock", "unix:/run//x.sock");
    check_unix("//run/x.sock", ADDRESS_UNIX, "/run/x.sock", "unix:/run/x.sock");
    check_unix("unix:/with space,comma:80", ADDRESS_UNIX, "/with space,comma:80", NULL);
    check_unix("unix-abstract:skycap", ADDRESS_UNIX_ABSTRACT, "skycap", NULL);
    check_unix("unix-abstract:/a,b", ADDRESS_UNIX_ABSTRACT, "/a,b", NULL);
}

static void
hosts_have_many_forms(void)
{
    check_tcp("localhost:80", "localhost", 80, NULL);
    check_tcp("node-1.example_x.org.:65535", "node-1.example_x.org.", 65535, NULL);
    check_tcp("127.0.0.1:0", "127.0.0.1", 0, NULL);
    check_tcp(":8080", "", 8080, NULL);
    check_tcp("[::1]:80", "::1", 80, NULL);
    check_tcp("[fe80::1%eth0]:80", "fe80::1%eth0", 80, NULL);
    check_tcp("dns:localhost:80", "localhost", 80, "localhost:80");
    check_tcp("dns:///localhost:80", "localhost", 80, "localhost:80");
    check_tcp("dns:[::1]:80", "::1", 80, "[::1]:80");
    check_tcp("passthrough:///localhost:80", "localhost", 80, "localhost:80");
    check_tcp("passthrough:[::1]:80", "::1", 80, "[::1]:80");
    check_tcp("ipv4:1.2.3.4:80", "1.2.3.4", 80, "1.2.3.4:80");
    check_tcp("ipv4:///1.2.3.4:80", "1.2.3.4", 80, "1.2.3.4:80");
    check_tcp("ipv4:///oim-controller:8999", "oim-controller", 8999, "oim-controller:8999");
    check_tcp("ipv6:[::1]:80", "::1", 80, "[::1]:80");
    check_tcp("ipv6:///[::1]:80", "::1", 80, "[::1]:80");
    check_tcp("tcp://localhost:80", "localhost", 80, "localhost:80");
    check_tcp("tcp://:8999", "", 8999, ":8999");
    check_tcp("tcp4://:8999", "0.0.0.0", 8999, "0.0.0.0:8999");
    check_tcp("tcp4://1.2.3.4:80", "1.2.3.4", 80, "1.2.3.4:80");
    check_tcp("tcp6://:8999", "::", 8999, "[::]:8999");
    check_tcp("tcp6://[::1]:80", "::1", 80, "[::1]:80");
    check_tcp("host:00080", "host", 80, "host:80");
}

static void
dns_has_a_default_port_and_a_server_that_is_ignored(void)
{
    check_tcp("dns:///localhost", "localhost", 443, "localhost:443");
    check_tcp("dns:localhost", "localhost", 443, "localhost:443");
    check_tcp("dns:///[::1]", "::1", 443, "[::1]:443");
    check_tcp("dns:///localhost:0", "localhost", 0, "localhost:0");
    check_tcp("dns://8.8.8.8/localhost:80", "localhost", 80, "localhost:80");
    check_tcp("dns://8.8.8.8:53/localhost", "localhost", 443, "localhost:443");
    check_refused("dns:///localhost:", "the port is missing");
    check_refused("dns:///[::1]80", "the port is missing");
    check_refused("dns://localhost:80", "no host behind the name server, write dns:///HOST:PORT");
    check_refused("dns://8.8.8.8/", "the port is missing");
    check_refused("dns://8.8.8.8/a/b", "a host may contain only letters");
}

static void
a_host_that_is_called_like_a_scheme_is_printed_with_one(void)
{
    check_tcp("tcp://unix:80", "unix", 80, "dns:unix:80");
    check_tcp("tcp://unix-abstract:80", "unix-abstract", 80, "dns:unix-abstract:80");
    check_tcp("dns:dns:80", "dns", 80, "dns:dns:80");
    check_tcp("tcp://ipv4:80", "ipv4", 80, "dns:ipv4:80");
    check_tcp("tcp://passthrough:80", "passthrough", 80, "dns:passthrough:80");
    check_tcp("tcp:80", "tcp", 80, NULL);
}

static void
errors_show_the_address_and_the_right_form(void)
{
    struct address address;
    struct error *error AUTO(error_cleanup) = address_parse("localhost", &address);
    CHECK_TEXT(error ? error->message : NULL,
               "address \"localhost\": the port is missing, write HOST:PORT (or unix:/path for a "
               "unix socket)");
}

static void
empty_addresses_are_refused(void)
{
    check_refused("", "it is empty");
    check_refused("unix:", "the path is empty, write unix:/path");
    check_refused("unix://", "the path is empty");
    check_refused("unix:///", "the path is empty");
    check_refused("/", "the path is empty");
    check_refused("unix-abstract:", "the name is empty, write unix-abstract:name");
    check_refused("dns:", "the port is missing");
    check_refused("tcp://", "the port is missing");
}

static void
ports_must_be_numbers(void)
{
    check_refused("localhost", "the port is missing, write HOST:PORT");
    check_refused("localhost:", "the port is missing, write HOST:PORT");
    check_refused("[::1]", "the port is missing, write [IPV6]:PORT");
    check_refused("[::1]80", "the port is missing, write [IPV6]:PORT");
    check_refused("[::1]:", "the port is missing");
    check_refused("localhost:http", "the port must be a number");
    check_refused("localhost:+80", "the port must be a number");
    check_refused("localhost:-80", "the port must be a number");
    check_refused("localhost: 80", "the port must be a number");
    check_refused("localhost:80/", "nothing after it");
    check_refused("localhost:65536", "the port must be 0 to 65535");
    check_refused("localhost:99999999999999999999", "the port must be 0 to 65535");
    check_refused("localhost:000080", "the port must be 0 to 65535");
}

static void
hosts_must_be_names_or_addresses(void)
{
    check_refused("::1:80", "put an IPv6 address in brackets");
    check_refused("dns:a:b:80", "more than one colon");
    check_refused("[::1:80", "the ']' is missing");
    check_refused("[localhost]:80", "must be an IPv6 address");
    check_refused("[1.2.3.4]:80", "must be an IPv6 address");
    check_refused("[]:80", "must be an IPv6 address");
    check_refused("[::1%]:80", "must be an IPv6 address");
    check_refused("[::1%a b]:80", "must be an IPv6 address");
    check_refused("a b:80", "a host may contain only letters");
    check_refused("run/x.sock", "a unix socket is written unix:/path");
    check_refused("./x.sock:80", "a host may contain only letters");
    check_refused("tcp:///localhost:80", "a host may contain only letters");
    check_refused("ipv4:[::1]:80", "that is an IPv6 address");
    check_refused("tcp4://[::1]:80", "that is an IPv6 address");
    check_refused("ipv6:1.2.3.4:80", "that is an IPv4 address");
    check_refused("tcp6://1.2.3.4:80", "that is an IPv4 address");
}

static void
what_grpc_has_and_we_have_not_is_refused_clearly(void)
{
    check_refused("ipv4:1.2.3.4:80,5.6.7.8:80", "a list of addresses is not supported");
    check_refused("a:1,b:2", "a list of addresses is not supported");
    check_refused("ipv4://8.8.8.8/localhost:80", "only dns: may name a server");
    check_refused("passthrough://8.8.8.8/localhost:80", "only dns: may name a server");
    check_refused("passthrough:///localhost", "the port is missing");
    check_refused("xds:///localhost:80", "unknown scheme, use unix:");
    check_refused("http://localhost:80", "unknown scheme");
}

static void
long_ones_fit_or_are_refused(void)
{
    char text[400] = "unix:/";
    struct address address;
    memset(text + 6, 'x', 106);
    address = parse_good(text);
    CHECK_NUMBER(address.path_size, 107);
    check_printed(text, &address, NULL);
    text[6 + 106] = 'x';
    check_refused(text, "the path is too long, a unix socket's path has at most 107 bytes");
    memset(text, 'h', 255);
    memcpy(text + 255, ":80", 4);
    address = parse_good(text);
    CHECK_NUMBER(strlen(address.host), 255);
    check_printed(text, &address, NULL);
    memset(text, 'h', 256);
    memcpy(text + 256, ":80", 4);
    check_refused(text, "the host is too long");
    memcpy(text, "unix-abstract:", 14);
    check_refused(text, "the name is too long");
}

int
main(void)
{
    unix_sockets_have_many_forms();
    hosts_have_many_forms();
    dns_has_a_default_port_and_a_server_that_is_ignored();
    a_host_that_is_called_like_a_scheme_is_printed_with_one();
    errors_show_the_address_and_the_right_form();
    empty_addresses_are_refused();
    ports_must_be_numbers();
    hosts_must_be_names_or_addresses();
    what_grpc_has_and_we_have_not_is_refused_clearly();
    long_ones_fit_or_are_refused();
    return check_report("address");
}
