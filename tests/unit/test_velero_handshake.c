/* SPDX-License-Identifier: Apache-2.0 */
/* src/velero/host_handshake.c */
#include "velero/host_handshake.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/memory.h"
#include "check.h"

static void
check_target(const char *line, const char *target)
{
    struct host_handshake handshake;
    struct error *error AUTO(error_cleanup) = host_handshake_parse(line, strlen(line), &handshake);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    if (error)
        return;
    CHECK_TEXT(handshake.target, target);
    CHECK_NUMBER(handshake.certificate.size, 0);
    host_handshake_clear(&handshake);
}

static void
check_refused_bytes(const char *line, size_t size, enum code code, const char *why)
{
    struct host_handshake handshake;
    struct error *error AUTO(error_cleanup) = host_handshake_parse(line, size, &handshake);
    CHECK(error != NULL);
    if (!error)
        return;
    CHECK_TEXT(error_code_name(error->code), error_code_name(code));
    if (!strstr(error->message, why))
        CHECK_TEXT(error->message, why);
}

static void
check_refused(const char *line, enum code code, const char *why)
{
    check_refused_bytes(line, strlen(line), code, why);
}

static void
lines_of_plugins_are_read(void)
{
    check_target("1|2|unix|/tmp/plugin1565546090|grpc|", "unix:/tmp/plugin1565546090");
    check_target("1|2|unix|/tmp/plugin1|grpc", "unix:/tmp/plugin1");
    check_target("  1|2|unix|/tmp/plugin1|grpc|\r", "unix:/tmp/plugin1");
    check_target("1|2|unix|/tmp/plugin1|grpc||true", "unix:/tmp/plugin1");
    check_target("1|2|unix|@plugin|grpc|", "unix-abstract:plugin");
    check_target("1|2|tcp|127.0.0.1:10000|grpc|", "127.0.0.1:10000");
    check_target("1|2|tcp|[::1]:25000|grpc|", "[::1]:25000");
    check_target("1|2|unix|/tmp/plugin1|grpc|short", "unix:/tmp/plugin1");
}

static void
other_versions_are_told(void)
{
    enum code code = CODE_FAILED_PRECONDITION;
    check_refused("2|2|unix|/tmp/x|grpc|", code, "version \"2\" of the handshake");
    check_refused("x|2|unix|/tmp/x|grpc|", code, "version \"x\" of the handshake");
    check_refused("1|1|unix|/tmp/x|grpc|", code, "version \"1\" of Velero's plugin protocol");
    check_refused("1|99999|unix|/tmp/x|grpc|", code, "this host speaks 2");
    check_refused("1|2|unix|/tmp/x", code, "it speaks \"netrpc\"");
    check_refused("1|2|unix|/tmp/x|netrpc|", code, "it speaks \"netrpc\"");
}

static void
what_is_no_handshake_is_quoted(void)
{
    enum code code = CODE_INVALID_ARGUMENT;
    check_refused("", code, "not a plugin's handshake: \"\"");
    check_refused("Hello, world", code, "handshake: \"Hello, world\"");
    check_refused("1|2|unix", code, "not a plugin's handshake");
    check_refused("1|2|unix|/tmp/x|grpc||true|more", code, "not a plugin's handshake");
    check_refused("\033[31m1|2|unix|/tmp/x|grpc|", code, "\"?[31m1|2");
    check_refused_bytes("1|2|unix|/tmp/x\0|grpc|", 22, code, "not a plugin's handshake");
    check_refused("1|2|unix||grpc|", code, "where it listens");
    check_refused("1|2|unix|tmp/x|grpc|", code, "not absolute");
    check_refused("1|2|udp|/tmp/x|grpc|", code, "neither unix nor tcp");
    check_refused("1|2|tcp|10.0.0.1:80|grpc|", code, "not an address of the loopback");
    check_refused("1|2|tcp|0.0.0.0:80|grpc|", code, "not an address of the loopback");
    check_refused("1|2|tcp|localhost:80|grpc|", code, "not an address of the loopback");
    check_refused("1|2|tcp|127.0.0.1:0|grpc|", code, "not an address of the loopback");
    check_refused("1|2|tcp|127.0.0.1:99999|grpc|", code, "99999");
}

static void
long_lines_are_refused(void)
{
    char *line AUTO(memory_cleanup) = memory_new(HOST_HANDSHAKE_MAX_BYTES + 2);
    memset(line, 'x', HOST_HANDSHAKE_MAX_BYTES + 1);
    check_refused_bytes(line, HOST_HANDSHAKE_MAX_BYTES + 1, CODE_INVALID_ARGUMENT, "65537 bytes");
    memcpy(line, "1|2|unix|/", 10);
    memcpy(line + 200, "|grpc|", 6);
    check_refused_bytes(line, 206, CODE_INVALID_ARGUMENT, "the path of its socket has 191 bytes");
    memcpy(line, "1|2|tcp|xx", 10);
    check_refused_bytes(line, 206, CODE_INVALID_ARGUMENT, "x");
    memset(line + 11, 'x', 400);
    memcpy(line + 400, "|grpc|", 6);
    check_refused_bytes(line, 406, CODE_INVALID_ARGUMENT, "its address has 392 bytes");
}

static void
certificates_are_decoded(void)
{
    uint8_t bytes[300];
    struct buffer line AUTO(buffer_clear) = {0};
    struct host_handshake handshake;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    buffer_append_text(&line, "1|2|unix|/tmp/x|grpc|");
    base64_encode(bytes, sizeof bytes, false, &line);
    struct error *error AUTO(error_cleanup) =
        host_handshake_parse(buffer_text(&line), line.size, &handshake);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    CHECK_NUMBER(handshake.certificate.size, sizeof bytes);
    CHECK(memcmp(handshake.certificate.bytes, bytes, sizeof bytes) == 0);
    host_handshake_clear(&handshake);
    buffer_append_text(&line, "|true");
    error = host_handshake_parse(buffer_text(&line), line.size, &handshake);
    CHECK_NUMBER(handshake.certificate.size, sizeof bytes);
    host_handshake_clear(&handshake);
    memset(line.bytes + 30, '!', 5);
    check_refused_bytes((char *)line.bytes, line.size, CODE_INVALID_ARGUMENT, "not valid base64");
}

int
main(void)
{
    lines_of_plugins_are_read();
    other_versions_are_told();
    what_is_no_handshake_is_quoted();
    long_lines_are_refused();
    certificates_are_decoded();
    return check_report("velero_handshake");
}
