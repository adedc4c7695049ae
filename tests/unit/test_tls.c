/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS: bytes arrive, and the names of the peer are the right ones. */
#include "tls_ends.h"

static void
fill(struct buffer *bytes, size_t size, uint32_t seed)
{
    uint8_t *room = buffer_reserve(bytes, size);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        room[i] = (uint8_t)(seed >> 24);
    }
    bytes->size += size;
}

static void
write_in_pieces(struct end *end, const struct buffer *bytes, size_t piece)
{
    for (size_t done = 0; done < bytes->size; done += piece) {
        size_t now = piece < bytes->size - done ? piece : bytes->size - done;
        CHECK(!tls_session_write(end->session, bytes->bytes + done, now));
    }
}

static bool
is_same(const struct buffer *a, const struct buffer *b)
{
    return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static void
test_bytes_arrive_both_ways(void)
{
    const size_t pieces[] = {MEGABYTE, 777, 70001};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct end server = our_server("ca.crt", "server");
        struct end client = our_client("ca.crt", "client", "controller.host-0");
        struct buffer forth = {0}, back = {0};
        fill(&forth, MEGABYTE, 1);
        fill(&back, MEGABYTE - 12345, 2);
        talk(&client, &server, 7);
        CHECK(both_established(&client, &server));
        write_in_pieces(&client, &forth, pieces[i]);
        write_in_pieces(&server, &back, pieces[COUNT_OF(pieces) - 1 - i]);
        talk(&client, &server, 9973);
        CHECK(is_same(&server.got, &forth));
        CHECK(is_same(&client.got, &back));
        CHECK(!client.error && !server.error && !client.closed && !server.closed);
        buffer_clear(&forth);
        buffer_clear(&back);
        end_clear(&client);
        end_clear(&server);
    }
}

static void
test_take_appends(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    struct buffer wire AUTO(buffer_clear) = {0};
    CHECK(!tls_session_write(client.session, "one ", 4));
    tls_session_take(client.session, &wire);
    size_t first = wire.size;
    CHECK(first > 4);
    CHECK(!tls_session_write(client.session, "two", 3));
    tls_session_take(client.session, &wire);
    CHECK_NUMBER(wire.size, 2 * first - 1);
    tls_session_take(client.session, &wire);
    CHECK_NUMBER(wire.size, 2 * first - 1);
    end_feed(&server, wire.bytes, wire.size);
    CHECK_TEXT(buffer_text(&server.got), "one two");
    end_clear(&client);
    end_clear(&server);
}

/* Fed all at once, and then again before all of it was read. */
static void
test_feed_need_not_wait_for_read(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    struct buffer bytes AUTO(buffer_clear) = {0}, wire AUTO(buffer_clear) = {0};
    fill(&bytes, MEGABYTE, 4);
    write_in_pieces(&client, &bytes, MEGABYTE);
    tls_session_take(client.session, &wire);
    size_t half = wire.size / 2;
    CHECK(!tls_session_feed(server.session, wire.bytes, half));
    CHECK(end_read(&server));
    CHECK(!tls_session_feed(server.session, wire.bytes + half, wire.size - half));
    while (end_read(&server))
        ;
    CHECK(is_same(&server.got, &bytes));
    end_clear(&client);
    end_clear(&server);
}

static void
test_nothing_is_written_for_nothing(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    struct buffer wire AUTO(buffer_clear) = {0};
    CHECK(!tls_session_write(client.session, "", 0));
    tls_session_take(client.session, &wire);
    CHECK_NUMBER(wire.size, 0);
    end_clear(&client);
    end_clear(&server);
}

static void
test_close_is_seen(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    tls_session_shutdown(client.session);
    talk(&client, &server, 1000);
    CHECK(both_established(&client, &server));
    CHECK(!client.closed && !server.closed);

    CHECK(!tls_session_write(client.session, "last", 4));
    tls_session_shutdown(client.session);
    talk(&client, &server, 1000);
    CHECK_TEXT(buffer_text(&server.got), "last");
    CHECK(server.closed && !server.error);
    CHECK(!client.closed);
    CHECK(!end_read(&server) && server.closed);

    CHECK(!tls_session_write(server.session, "answer", 6));
    tls_session_shutdown(server.session);
    talk(&client, &server, 1000);
    CHECK_TEXT(buffer_text(&client.got), "answer");
    CHECK(client.closed && !client.error);
    struct error *error = tls_session_write(server.session, "more", 4);
    CHECK_MENTIONS(error, "TLS: protocol is shutdown");
    error_free(error);
    end_clear(&client);
    end_clear(&server);
}

static void
test_garbage_is_an_error(void)
{
    struct buffer noise AUTO(buffer_clear) = {0};
    fill(&noise, 4096, 3);
    const char *preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (int i = 0; i < 4; i++) {
        struct end end = i % 2 ? our_server("ca.crt", "server")
                               : our_client("ca.crt", "client", "controller.host-0");
        end_read(&end);
        if (i < 2)
            end_feed(&end, noise.bytes, noise.size);
        else
            end_feed(&end, (const uint8_t *)preface, strlen(preface));
        CHECK(end.error && end.error->code == CODE_UNAVAILABLE);
        if (i >= 2)
            CHECK_MENTIONS(end.error, "wrong version number (does the peer speak TLS?)");
        CHECK(!tls_session_is_established(end.session));

        error_free(end.error);
        end.error = tls_session_feed(end.session, "x", 1);
        CHECK_MENTIONS(end.error, "already failed");
        error_free(end.error);
        end_read(&end);
        CHECK_MENTIONS(end.error, "already failed");
        end_clear(&end);
    }
}

static void
test_a_changed_byte_is_an_error(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    struct buffer wire AUTO(buffer_clear) = {0};
    CHECK(!tls_session_write(client.session, "secret", 6));
    tls_session_take(client.session, &wire);
    wire.bytes[wire.size - 1] ^= 1;
    end_feed(&server, wire.bytes, wire.size);
    CHECK(server.error && !server.got.size);
    struct error *error = tls_session_write(server.session, "x", 1);
    CHECK_MENTIONS(error, "already failed");
    error_free(error);
    talk(&client, &server, 1000);
    CHECK_MENTIONS(client.error, "alert 20, bad record mac");
    end_clear(&client);
    end_clear(&server);
}

static void
test_the_expected_name_is_compared(void)
{
    check_name("server", "controller.host-0", true);
    check_name("server", "controller.host-1", false);
    check_name("server", "controller.host-00", false);
    check_name("server", "controller.host-", false);
    check_name("server", "Controller.host-0", false);
    check_name("server", "", false);
    check_name("several", "Several", true);
    check_name("several", "node-1.example", true);
    check_name("several", "node-2.example", false);
    check_name("several", "127.0.0.1", true);
    check_name("several", "127.0.0.2", false);
    check_name("several", "::1", true);
    check_name("several", "0:0::0:1", true);
    check_name("several", "::2", false);
    check_name("several", "a@b.example", false);
}

static void
test_a_wrong_name_is_told_to_both(void)
{
    struct end server = our_server("ca.crt", "several");
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    CHECK_TEXT(client.error ? client.error->message : "",
               "peer presented the name(s) \"Several, node-1.example, *.example, 127.0.0.1, ::1\" "
               "but \"controller.host-0\" was expected");
    CHECK(client.error && client.error->code == CODE_UNAVAILABLE);
    CHECK_MENTIONS(server.error, "the peer does not accept our certificate in");
    CHECK_MENTIONS(server.error, "several.crt");
    CHECK_MENTIONS(server.error, "alert 42, bad certificate");
    CHECK(!tls_session_is_established(server.session));
    end_clear(&client);
    end_clear(&server);
}

static void
test_names_are_there_after_the_handshake_only(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = our_client("ca.crt", "several", "controller.host-0");
    const char *const *names;
    /* The client's last flight has its certificate before the proof that it has the key. */
    end_read(&client);
    carry(&client, &server, 1000);
    carry(&server, &client, 1000);
    struct buffer wire AUTO(buffer_clear) = {0};
    tls_session_take(client.session, &wire);
    CHECK(wire.size > 200);
    end_feed(&server, wire.bytes, wire.size - 20);
    CHECK(!server.error);
    CHECK_NUMBER(tls_session_peer_names(server.session, &names), 0);
    CHECK(!tls_session_peer_is(server.session, "Several"));
    end_feed(&server, wire.bytes + wire.size - 20, 20);

    CHECK(both_established(&client, &server));
    CHECK_NUMBER(tls_session_peer_names(server.session, &names), 5);
    const char *expected[] = {"Several", "node-1.example", "*.example", "127.0.0.1", "::1"};
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        CHECK_TEXT(names[i], expected[i]);
    CHECK(tls_session_peer_is(server.session, "node-1.example"));
    CHECK(!tls_session_peer_is(server.session, "node-2.example"));
    CHECK_NUMBER(tls_session_peer_names(client.session, &names), 1);
    CHECK_TEXT(names[0], "controller.host-0");
    end_clear(&client);
    end_clear(&server);
}

static void
test_two_common_names_are_none(void)
{
    issue_and_save(
        "two-names", &ca,
        (struct wanted){.name = "user.admin", .second_name = "user.other", .usage = BOTH_USAGES});
    check_name("two-names", "user.admin", false);
    check_name("two-names", "user.other", false);
}

/* A CA may sign a name that goes on behind a NUL; C would see only what stands before. */
static void
test_a_name_with_a_nul_is_none(void)
{
    static const unsigned char tricky[] = "user.admin\0.evil.example";
    struct issued issued = issue(&ca, (struct wanted){.name = "plain", .usage = BOTH_USAGES});
    X509_NAME *subject = X509_NAME_new();
    must(X509_NAME_add_entry_by_NID(subject, NID_commonName, V_ASN1_UTF8STRING, tricky,
                                    sizeof tricky - 1, -1, 0),
         "name");
    X509_set_subject_name(issued.certificate, subject);
    must(X509_sign(issued.certificate, ca.key, EVP_sha256()) > 0, "signature");
    save("tricky", &issued);
    check_name("tricky", "user.admin", false);
    X509_NAME_free(subject);
    drop(&issued);
}

static void
test_long_lists_of_names_make_short_errors(void)
{
    check_name("many", "node-499.a-long-domain.example", true);
    struct end server = our_server("ca.crt", "many");
    struct end client = our_client("ca.crt", "client", "other");
    talk(&client, &server, 1000);
    CHECK_MENTIONS(client.error, ", ...\" but \"other\" was expected");
    CHECK(client.error && strlen(client.error->message) < 600);
    end_clear(&client);
    end_clear(&server);
}

static void
check_sni(const char *host, const char *expected)
{
    struct tls_context *context = open_context("ca.crt", "client");
    struct end client = {.session = tls_session_new_client(context, "controller.host-0", host)};
    struct end server = raw_end(raw_context("server"), true);
    talk(&client, &server, 1000);
    const char *seen = SSL_get_servername(server.raw, TLSEXT_NAMETYPE_host_name);
    CHECK_TEXT(seen ? seen : "nothing", expected);
    end_clear(&client);
    end_clear(&server);
    tls_context_close(context);
}

static void
test_sni_is_a_host_or_nothing(void)
{
    char long_name[300];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    check_sni("node-1.example", "node-1.example");
    check_sni("node-1.example.", "node-1.example");
    check_sni(NULL, "nothing");
    check_sni("", "nothing");
    check_sni(".", "nothing");
    check_sni("127.0.0.1", "nothing");
    check_sni("::1", "nothing");
    check_sni(long_name, "nothing");
}

static void
change_keys(struct end *client, struct end *server, int times)
{
    for (int i = 0; i < times; i++) {
        CHECK(SSL_key_update(client->raw, SSL_KEY_UPDATE_REQUESTED));
        CHECK(SSL_do_handshake(client->raw) == 1);
    }
    talk(client, server, 1000);
}

/* Each change costs the loop as much time as a megabyte of data, and its peer 27 bytes. */
static void
test_keys_are_not_changed_without_end(void)
{
    struct end server = our_server("ca.crt", "server");
    struct end client = raw_end(raw_context("client"), false);
    talk(&client, &server, 1000);
    change_keys(&client, &server, 20);
    check_greeting(&client, &server);
    change_keys(&client, &server, 100);
    CHECK_MENTIONS(server.error, "sends too many key updates");
    end_clear(&client);
    end_clear(&server);
}

int
main(void)
{
    ends_set_up();
    test_bytes_arrive_both_ways();
    test_take_appends();
    test_feed_need_not_wait_for_read();
    test_nothing_is_written_for_nothing();
    test_close_is_seen();
    test_garbage_is_an_error();
    test_a_changed_byte_is_an_error();
    test_the_expected_name_is_compared();
    test_a_wrong_name_is_told_to_both();
    test_names_are_there_after_the_handshake_only();
    test_two_common_names_are_none();
    test_a_name_with_a_nul_is_none();
    test_long_lists_of_names_make_short_errors();
    test_sni_is_a_host_or_nothing();
    test_keys_are_not_changed_without_end();
    ends_clean_up();
    return check_report("test_tls");
}
