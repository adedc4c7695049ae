/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/rpc/tls/small_*.c, TLS with mbedTLS: against itself and against a bare OpenSSL peer. "Ours"
 * is mbedTLS here: this test is linked with it in the place of the library's own files.
 */
#include "tls_identity_checks.h"

/* Ours as client or server, in pieces of any size; a message larger than a record. */
static void
bytes_arrive_both_ways(void)
{
    static char large[100000];
    memset(large, 'x', sizeof large - 1);
    for (size_t piece = 1; piece < 100000; piece *= 37) {
        struct end server = our_server("ca.crt", "server");
        struct end client = our_client("ca.crt", "client", "controller.host-0");
        talk(&client, &server, piece);
        CHECK(both_established(&client, &server));
        check_greeting(&client, &server);
        server.got.size = 0;
        CHECK(!tls_session_write(client.session, large, sizeof large - 1));
        talk(&client, &server, piece);
        CHECK_TEXT(buffer_text(&server.got), large);
        end_clear(&client);
        end_clear(&server);
    }
}

static void
openssl_is_understood(void)
{
    for (int we_serve = 0; we_serve < 2; we_serve++) {
        struct end raw = raw_end(raw_context(we_serve ? "client" : "server"), !we_serve);
        struct end ours = we_serve ? our_server("ca.crt", "server")
                                   : our_client("ca.crt", "client", "controller.host-0");
        struct end *client = we_serve ? &raw : &ours, *server = we_serve ? &ours : &raw;
        talk(client, server, 1000);
        CHECK(SSL_version(raw.raw) >= TLS1_2_VERSION);
        check_greeting(client, server);
        end_clear(&raw);
        end_clear(&ours);
    }
}

static void
close_is_seen(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    CHECK(!tls_session_write(client.session, "last", 4));
    tls_session_shutdown(client.session);
    talk(&client, &server, 1000);
    CHECK_TEXT(buffer_text(&server.got), "last");
    CHECK(server.closed && !server.error && !client.closed);
    CHECK(!end_read(&server) && server.closed);
    struct error *error = tls_session_write(client.session, "more", 4);
    CHECK_MENTIONS(error, "TLS: protocol is shutdown");
    error_free(error);
    end_clear(&client);
    end_clear(&server);
}

/* Exactly: no patterns, and addresses in any form. */
static void
names_are_compared(void)
{
    check_name("server", "controller.host-0", true);
    check_name("server", "controller.host-1", false);
    check_name("several", "Several", true);
    check_name("several", "node-1.example", true);
    check_name("several", "NODE-1.example", false);
    check_name("several", "node-2.example", false); /* it has *.example */
    check_name("several", "*.example", true);
    check_name("several", "127.0.0.1", true);
    check_name("several", "0:0::1", true);
    check_name("several", "::2", false);
    issue_and_save(
        "two-names", &ca,
        (struct wanted){.name = "user.admin", .second_name = "user.other", .usage = BOTH_USAGES});
    check_name("two-names", "user.admin", false);
}

static void
check_refused(struct end server, struct end client, bool by_client, const char *why)
{
    talk(&client, &server, 1000);
    CHECK_MENTIONS(by_client ? client.error : server.error, why);
    CHECK(client.error || server.error);
    CHECK(!(by_client ? client : server).session ||
          !tls_session_is_established((by_client ? client : server).session));
    end_clear(&client);
    end_clear(&server);
}

static void
strangers_are_refused(void)
{
    check_refused(our_server("ca.crt", "evil-server"),
                  our_client("ca.crt", "client", "controller.host-0"), true,
                  "not correctly signed by the trusted CA");
    check_refused(our_server("ca.crt", "server"),
                  our_client("ca.crt", "evil-client", "controller.host-0"), false,
                  "not correctly signed by the trusted CA");
    issue_and_save(
        "old", &ca,
        (struct wanted){.name = "old", .usage = BOTH_USAGES, .from = -2 * DAY, .until = -DAY});
    struct end old = raw_end(raw_context("old"), true);
    check_refused(old, our_client("ca.crt", "client", "old"), true, "validity has expired");
    struct end nobody = raw_end(raw_context(NULL), false);
    check_refused(our_server("ca.crt", "server"), nobody, false, "No client certification");
    issue_and_save("only-client", &ca, (struct wanted){.name = "x", .usage = "clientAuth"});
    struct end only_client = raw_end(raw_context("only-client"), true);
    check_refused(only_client, our_client("ca.crt", "client", "x"), true, "Certificate");
}

static void
a_changed_byte_is_an_error(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    struct buffer wire AUTO(buffer_clear) = {0};
    talk(&client, &server, 1000);
    CHECK(!tls_session_write(client.session, "hello", 5));
    tls_session_take(client.session, &wire);
    wire.bytes[wire.size - 1] ^= 1;
    end_feed(&server, wire.bytes, wire.size);
    CHECK(server.error && server.error->code == CODE_UNAVAILABLE);
    CHECK_TEXT(buffer_text(&server.got), "");
    struct error *again = tls_session_feed(server.session, "x", 1);
    CHECK_MENTIONS(again, "already failed");
    error_free(again);
    end_clear(&client);
    end_clear(&server);
}

static void
check_files(const char *ca_file, const char *certificate, const char *key, const char *why)
{
    char paths[3][300];
    snprintf(paths[0], sizeof paths[0], "%s", at(ca_file));
    snprintf(paths[1], sizeof paths[1], "%s", at(certificate));
    snprintf(paths[2], sizeof paths[2], "%s", at(key));
    struct tls_context *context = NULL;
    struct error *error =
        tls_context_open(&(struct tls_options){paths[0], paths[1], paths[2]}, &context);
    CHECK(!context);
    CHECK_MENTIONS(error, why);
    error_free(error);
}

static void
bad_files_are_named(void)
{
    save_text("prose", "no certificate\n");
    check_files("none", "server.crt", "server.key", "none");
    check_files("prose", "server.crt", "server.key", "prose\" contains no usable certificate");
    check_files("ca.crt", "server.crt", "client.key", "does not match the certificate");
    check_files("ca.crt", "server.crt", "prose", "prose\" contains no usable private key");
    check_files("ca.crt", "old.crt", "old.key", "has expired: renew it");
}

int
main(void)
{
    ends_set_up();
    bytes_arrive_both_ways();
    openssl_is_understood();
    close_is_seen();
    names_are_compared();
    strangers_are_refused();
    a_changed_byte_is_an_error();
    bad_files_are_named();
    an_identity_is_trusted_by_who_knows_it();
    ends_clean_up();
    return check_report("test_tls_small");
}
