/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS: who is let in, by certificate, by TLS version and by protocol. */
#include "tls_ends.h"

static void
test_another_ca_with_the_same_names_is_refused(void)
{
    struct end server = our_server("ca.crt", "evil-server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    CHECK_MENTIONS(client.error, "certificate verify failed: certificate signature failure: ");
    CHECK_MENTIONS(client.error, "the peer's certificate is not signed by the CA in \"");
    CHECK_MENTIONS(client.error, "/ca.crt\"");
    CHECK_MENTIONS(server.error, "the peer does not accept our certificate in");
    CHECK(!tls_session_is_established(client.session));
    CHECK(!tls_session_is_established(server.session));
    end_clear(&client);
    end_clear(&server);

    server = our_server("ca.crt", "server");
    client = our_client("ca.crt", "evil-client", "controller.host-0");
    talk(&client, &server, 1000);
    CHECK_MENTIONS(server.error, "the peer's certificate is not signed by the CA in \"");
    CHECK_MENTIONS(client.error, "the peer does not accept our certificate in");
    CHECK_MENTIONS(client.error, "evil-client.crt");
    CHECK(!tls_session_is_established(server.session));
    CHECK(!tls_session_peer_is(server.session, "component.registry"));
    end_clear(&client);
    end_clear(&server);
}

static void
test_a_chain_that_carries_its_own_root_is_refused(void)
{
    struct issued other_ca = issue(NULL, (struct wanted){.name = "Other CA"});
    issue_and_save("other", &other_ca,
                   (struct wanted){.name = "controller.host-0", .usage = BOTH_USAGES});
    SSL_CTX *context = raw_context("other");
    SSL_CTX_add1_chain_cert(context, other_ca.certificate);
    drop(&other_ca);
    struct end server = raw_end(context, true);
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    CHECK_MENTIONS(client.error, "certificate verify failed: self-signed certificate in "
                                 "certificate chain: /CN=Other CA (the peer's certificate is not "
                                 "signed by the CA in \"");
    CHECK_ALERT(&server, SSL_AD_UNKNOWN_CA);
    end_clear(&client);
    end_clear(&server);
}

static void
test_a_client_without_certificate_is_refused(void)
{
    const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct end server = our_server("ca.crt", "server");
        struct end client = raw_end(raw_context(NULL), false);
        SSL_set_max_proto_version(client.raw, versions[i]);
        talk(&client, &server, 1000);
        CHECK_MENTIONS(server.error, "peer did not return a certificate (the peer must present");
        CHECK(!tls_session_is_established(server.session));
        CHECK_ALERT(&client, i ? SSL_AD_CERTIFICATE_REQUIRED : SSL_AD_HANDSHAKE_FAILURE);
        end_clear(&client);
        end_clear(&server);
    }
}

static void
check_refused_client(struct wanted wanted, const char *text, int alert)
{
    issue_and_save("refused", &ca, wanted);
    struct end server = our_server("ca.crt", "server");
    struct end client = raw_end(raw_context("refused"), false);
    talk(&client, &server, 1000);
    CHECK_MENTIONS(server.error, text);
    CHECK(!tls_session_is_established(server.session));
    CHECK_ALERT(&client, alert);
    end_clear(&client);
    end_clear(&server);
}

static void
check_refused_server(struct wanted wanted, const char *text, int alert)
{
    issue_and_save("refused", &ca, wanted);
    struct end server = raw_end(raw_context("refused"), true);
    struct end client = our_client("ca.crt", "client", wanted.name);
    talk(&client, &server, 1000);
    CHECK_MENTIONS(client.error, text);
    CHECK(!tls_session_is_established(client.session));
    CHECK_ALERT(&server, alert);
    end_clear(&client);
    end_clear(&server);
}

static void
test_certificates_out_of_time_are_refused(void)
{
    struct wanted old = {"old", .usage = BOTH_USAGES, .from = -2 * DAY, .until = -DAY};
    check_refused_client(old, "certificate has expired: /CN=old (renew it",
                         SSL_AD_CERTIFICATE_EXPIRED);
    check_refused_server(old, "certificate has expired: /CN=old (renew it",
                         SSL_AD_CERTIFICATE_EXPIRED);
    struct wanted young = {"young", .usage = BOTH_USAGES, .from = DAY, .until = 2 * DAY};
    check_refused_client(young, "certificate is not yet valid: /CN=young (compare the clocks",
                         SSL_AD_BAD_CERTIFICATE);
}

static void
test_certificates_for_the_other_role_are_refused(void)
{
    check_refused_client((struct wanted){"server-only", .usage = "serverAuth"},
                         "the peer's certificate needs the extended key usage",
                         SSL_AD_UNSUPPORTED_CERTIFICATE);
    check_refused_server((struct wanted){"client-only", .usage = "clientAuth"},
                         "the peer's certificate needs the extended key usage",
                         SSL_AD_UNSUPPORTED_CERTIFICATE);
}

/* The root signed a middle CA, that signed the server; either of them will do as anchor. */
static void
test_chains_and_anchors(void)
{
    struct issued middle = issue(&ca, (struct wanted){.name = "Middle CA"});
    struct issued leaf =
        issue(&middle, (struct wanted){.name = "controller.host-0", .usage = BOTH_USAGES});
    save("chained", &leaf);
    save_certificate("middle.crt", &middle);
    check_name("chained", "controller.host-0", false);

    FILE *file = fopen(at("chained.crt"), "a");
    must(file && PEM_write_X509(file, middle.certificate), "chain");
    fclose(file);
    check_name("chained", "controller.host-0", true);

    issue_and_save("under-middle", &middle,
                   (struct wanted){.name = "component.registry", .usage = BOTH_USAGES});
    struct end server = our_server("middle.crt", "chained");
    struct end client = our_client("middle.crt", "under-middle", "controller.host-0");
    talk(&client, &server, 1000);
    check_greeting(&client, &server);
    end_clear(&client);
    end_clear(&server);
    drop(&leaf);
    drop(&middle);
}

static void
test_versions(void)
{
    const struct {
        int newest;
        bool good;
    } cases[] = {{TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}};
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        bool we_serve = i % 2;
        SSL_CTX *context = raw_context(we_serve ? "client" : "server");
        SSL_CTX_set_security_level(context, 0); /* or it would not even try TLS 1.1 */
        SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(context, cases[i / 2].newest);
        struct end raw = raw_end(context, !we_serve);
        struct end ours = we_serve ? our_server("ca.crt", "server")
                                   : our_client("ca.crt", "client", "controller.host-0");
        struct end *client = we_serve ? &raw : &ours, *server = we_serve ? &ours : &raw;
        talk(client, server, 1000);
        CHECK_NUMBER(tls_session_is_established(ours.session), cases[i / 2].good);
        if (cases[i / 2].good) {
            CHECK_NUMBER(SSL_version(raw.raw), cases[i / 2].newest);
            check_greeting(client, server);
        } else if (we_serve) {
            CHECK_MENTIONS(ours.error, "unsupported protocol (the peer needs TLS 1.2 or later)");
            CHECK_ALERT(&raw, SSL_AD_PROTOCOL_VERSION);
        } else {
            CHECK_MENTIONS(ours.error, "alert 70, protocol version");
            CHECK(raw.raw_error);
        }
        end_clear(&raw);
        end_clear(&ours);
    }
}

/* HTTP/2 forbids it (RFC 9113, 9.2.2). */
static void
test_an_old_cipher_is_refused(void)
{
    SSL_CTX *context = raw_context("client");
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    must(SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-SHA256"), "cipher");
    struct end server = our_server("ca.crt", "server");
    struct end client = raw_end(context, false);
    talk(&client, &server, 1000);
    CHECK_MENTIONS(server.error, "no shared cipher (the peer offers none that HTTP/2 allows)");
    CHECK_ALERT(&client, SSL_AD_HANDSHAKE_FAILURE);
    end_clear(&client);
    end_clear(&server);
}

static int
choose_http1(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *offered,
             unsigned offered_size, void *unused)
{
    (void)ssl, (void)offered, (void)offered_size, (void)unused;
    *out = (const unsigned char *)"http/1.1";
    *size = 8;
    return SSL_TLSEXT_ERR_OK;
}

static void
check_alpn_of_client(const char *offer, const char *selected)
{
    struct end server = our_server("ca.crt", "server");
    SSL_CTX *context = raw_context("client");
    if (offer)
        SSL_CTX_set_alpn_protos(context, (const unsigned char *)offer, (unsigned)strlen(offer));
    struct end client = raw_end(context, false);
    talk(&client, &server, 1000);
    CHECK_NUMBER(tls_session_is_established(server.session), selected != NULL);
    if (selected) {
        const unsigned char *protocol;
        unsigned size;
        SSL_get0_alpn_selected(client.raw, &protocol, &size);
        CHECK_NUMBER(size, strlen(selected));
        CHECK(!size || !memcmp(protocol, selected, size));
        check_greeting(&client, &server);
    } else {
        CHECK_MENTIONS(server.error, "the peer offers protocols by ALPN, but not \"h2\"");
        CHECK_ALERT(&client, SSL_AD_NO_APPLICATION_PROTOCOL);
    }
    end_clear(&client);
    end_clear(&server);
}

static void
test_server_wants_h2_or_no_alpn(void)
{
    check_alpn_of_client("\x02h2", "h2");
    check_alpn_of_client("\x08http/1.1\x02h2", "h2");
    check_alpn_of_client(NULL, "");
    check_alpn_of_client("\x08http/1.1", NULL);
    check_alpn_of_client("\x03h2c", NULL);
}

static void
test_client_wants_h2_or_no_alpn(void)
{
    const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2 * COUNT_OF(versions); i++) {
        SSL_CTX *context = raw_context("server");
        SSL_CTX_set_max_proto_version(context, versions[i / 2]);
        if (i % 2)
            SSL_CTX_set_alpn_select_cb(context, choose_http1, NULL);
        struct end server = raw_end(context, true);
        struct end client = our_client("ca.crt", "client", "controller.host-0");
        talk(&client, &server, 1000);
        if (i % 2) {
            CHECK_MENTIONS(client.error, "did the peer choose a protocol other than \"h2\"");
            CHECK(!tls_session_is_established(client.session));
            CHECK_ALERT(&server, SSL_AD_DECODE_ERROR);
        } else {
            check_greeting(&client, &server);
        }
        end_clear(&client);
        end_clear(&server);
    }
}

static void
test_nothing_is_resumed(void)
{
    const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct tls_context *context = open_context("ca.crt", "server");
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        SSL_SESSION *remembered = NULL;
        for (int turn = 0; turn < 2; turn++) {
            struct end server = {.session = tls_session_new_server(context)};
            struct end client = raw_end(raw_context("client"), false);
            SSL_set_max_proto_version(client.raw, versions[i]);
            if (remembered)
                SSL_set_session(client.raw, remembered);
            talk(&client, &server, 1000);
            check_greeting(&client, &server);
            CHECK(!SSL_session_reused(client.raw));
            SSL_SESSION_free(remembered);
            remembered = SSL_get1_session(client.raw);
            CHECK(!SSL_SESSION_has_ticket(remembered));
            end_clear(&client);
            end_clear(&server);
            ERR_clear_error();
        }
        SSL_SESSION_free(remembered);
    }
    tls_context_close(context);
}

static void
test_renegotiation_is_refused(void)
{
    for (int we_serve = 0; we_serve < 2; we_serve++) {
        struct end raw = raw_end(raw_context(we_serve ? "client" : "server"), !we_serve);
        struct end ours = we_serve ? our_server("ca.crt", "server")
                                   : our_client("ca.crt", "client", "controller.host-0");
        struct end *client = we_serve ? &raw : &ours, *server = we_serve ? &ours : &raw;
        SSL_set_max_proto_version(raw.raw, TLS1_2_VERSION);
        talk(client, server, 1000);
        CHECK(!end_is_broken(&raw) && tls_session_is_established(ours.session));
        CHECK(SSL_renegotiate(raw.raw));
        SSL_do_handshake(raw.raw);
        talk(client, server, 1000);
        CHECK_NUMBER(ERR_GET_REASON(raw.raw_error), SSL_R_NO_RENEGOTIATION);
        end_clear(&raw);
        end_clear(&ours);
    }
}

static void
test_key_updates_are_followed(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = raw_end(raw_context("client"), false);
    talk(&client, &server, 1000);
    for (int i = 0; i < 3; i++) {
        CHECK(SSL_key_update(client.raw, SSL_KEY_UPDATE_REQUESTED));
        check_greeting(&client, &server);
    }
    end_clear(&client);
    end_clear(&server);
}

/*
 * A server's session ticket in several records, with our writes in between: OpenSSL takes no
 * plaintext until it has the whole message, the session must keep ours in order until then.
 */
static void
test_writes_between_the_parts_of_a_message(void)
{
    SSL_CTX *context = raw_context("server");
    SSL_CTX_set_max_send_fragment(context, 512);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    must(SSL_CTX_load_verify_locations(context, at("ca.crt"), NULL), "CA");
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"test", 4);
    struct end server = raw_end(context, true);
    struct end client = our_client("ca.crt", "many", "controller.host-0");
    end_read(&client);
    carry(&client, &server, MEGABYTE);
    carry(&server, &client, MEGABYTE);
    carry(&client, &server, MEGABYTE);
    CHECK(tls_session_is_established(client.session));

    struct buffer tickets AUTO(buffer_clear) = {0}, sent AUTO(buffer_clear) = {0};
    end_take(&server, &tickets);
    CHECK(tickets.size > 3 * 512);
    for (size_t done = 0; done < tickets.size; done += 100) {
        size_t now = tickets.size - done < 100 ? tickets.size - done : 100;
        CHECK(!tls_session_feed(client.session, tickets.bytes + done, now));
        /* Before the read that makes OpenSSL see what was fed, and behind it. */
        for (int turn = 0; turn < 2; turn++) {
            char part[32];
            snprintf(part, sizeof part, "part %zu.%d;", done, turn);
            buffer_append_text(&sent, part);
            CHECK(!tls_session_write(client.session, part, strlen(part)));
            CHECK(turn || !end_read(&client));
        }
    }
    talk(&client, &server, 1000);
    CHECK_TEXT(buffer_text(&server.got), buffer_text(&sent));
    check_greeting(&client, &server);
    end_clear(&client);
    end_clear(&server);
}

int
main(void)
{
    ends_set_up();
    test_another_ca_with_the_same_names_is_refused();
    test_a_chain_that_carries_its_own_root_is_refused();
    test_a_client_without_certificate_is_refused();
    test_certificates_out_of_time_are_refused();
    test_certificates_for_the_other_role_are_refused();
    test_chains_and_anchors();
    test_versions();
    test_an_old_cipher_is_refused();
    test_server_wants_h2_or_no_alpn();
    test_client_wants_h2_or_no_alpn();
    test_nothing_is_resumed();
    test_renegotiation_is_refused();
    test_key_updates_are_followed();
    test_writes_between_the_parts_of_a_message();
    ends_clean_up();
    return check_report("test_tls_trust");
}
