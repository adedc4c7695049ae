/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS: bad files are named, new files are taken while sessions run. */
#include <time.h>

#include "tls_ends.h"

static void
check_open_fails(const char *ca_file, const char *certificate, const char *key, const char *text)
{
    struct tls_context *context = NULL;
    struct tls_options options = {at(ca_file), at(certificate), at(key)};
    struct error *error = tls_context_open(&options, &context);
    CHECK(!context);
    CHECK_MENTIONS(error, text);
    CHECK_MENTIONS(error, directory);
    CHECK_NUMBER(ERR_peek_error(), 0);
    error_free(error);
}

static void
save_encrypted_key(const char *name)
{
    FILE *file = open_new(name);
    must(PEM_write_PrivateKey(file, ca.key, EVP_aes_128_cbc(), (const unsigned char *)"word", 4,
                              NULL, NULL),
         name);
    fclose(file);
}

static void
test_bad_files_are_named(void)
{
    save_text("empty", "");
    save_text("prose", "This is not a certificate.\n");
    save_text("damaged", "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n");
    save_encrypted_key("encrypted.key");
    issue_and_save("old", &ca,
                   (struct wanted){"old", .usage = BOTH_USAGES, .from = -9 * DAY, .until = -60});
    issue_and_save("young", &ca,
                   (struct wanted){"young", .usage = BOTH_USAGES, .from = DAY, .until = 9 * DAY});
    issue_and_save("old-ca", NULL,
                   (struct wanted){.name = "Old CA", .from = -9 * DAY, .until = -60});

    check_open_fails("none", "server.crt", "server.key", "none\": No such file or directory");
    check_open_fails("ca.crt", "none", "server.key", "none\": No such file or directory");
    check_open_fails("ca.crt", "server.crt", "none", "none\": No such file or directory");
    check_open_fails("", "server.crt", "server.key", "\": not a regular file");
    check_open_fails("empty", "server.crt", "server.key", "empty\" contains no certificate");
    check_open_fails("prose", "server.crt", "server.key", "prose\" contains no certificate");
    check_open_fails("damaged", "server.crt", "server.key", "damaged\" is damaged");
    check_open_fails("old-ca.crt", "server.crt", "server.key", "every certificate in ");
    check_open_fails("ca.crt", "empty", "server.key", "empty\" contains no certificate");
    check_open_fails("ca.crt", "server.key", "server.key", "server.key\" contains no certificate");
    check_open_fails("ca.crt", "server.crt", "server.crt",
                     "server.crt\" contains no usable private key");
    check_open_fails("ca.crt", "server.crt", "encrypted.key", "encrypted.key\" is encrypted");
    check_open_fails("ca.crt", "server.crt", "client.key",
                     "client.key\" does not match the certificate in");
    check_open_fails("ca.crt", "old.crt", "old.key", "old.crt\" expired at 2");
    check_open_fails("ca.crt", "young.crt", "young.key", "young.crt\" is not valid before 2");
}

static void
test_unreadable_and_oversized_files(void)
{
    struct buffer large AUTO(buffer_clear) = {0};
    while (large.size <= MEGABYTE)
        buffer_append_text(&large, "# a comment that goes on and on\n");
    save_text("large", buffer_text(&large));
    check_open_fails("large", "server.crt", "server.key", "is larger than 1 MiB");
    must(!mkfifo(at("pipe"), 0600), "mkfifo");
    check_open_fails("pipe", "server.crt", "server.key", "not a regular file");
    if (geteuid() == 0)
        return; /* root reads everything */
    save_text("closed", "");
    chmod(at("closed"), 0);
    check_open_fails("closed", "server.crt", "server.key", "Permission denied");
}

static void
test_one_file_for_certificate_and_key(void)
{
    struct issued issued =
        issue(&ca, (struct wanted){.name = "controller.host-0", .usage = BOTH_USAGES});
    for (int key_first = 0; key_first < 2; key_first++) {
        FILE *file = open_new("both.crt");
        for (int i = 0; i < 2; i++)
            must(i == key_first ? PEM_write_X509(file, issued.certificate)
                                : PEM_write_PrivateKey(file, issued.key, NULL, NULL, 0, NULL, NULL),
                 "both");
        fclose(file);
        unlink(at("both.key"));
        must(!symlink("both.crt", at("both.key")), "symlink");
        check_name("both", "controller.host-0", true);
    }
    drop(&issued);
}

static bool
reload(struct tls_context *context, struct error **error)
{
    bool changed = true;
    error_free(*error);
    *error = tls_context_reload(context, &changed);
    CHECK_NUMBER(ERR_peek_error(), 0);
    return changed;
}

/* Which name a client sees that connects now. */
static const char *
name_served(struct tls_context *context, char out[64])
{
    struct end server = {.session = tls_session_new_server(context)};
    SSL_CTX *trusting = raw_context("client");
    struct end client = raw_end(trusting, false);
    talk(&client, &server, 1000);
    check_greeting(&client, &server);
    X509 *certificate = SSL_get0_peer_certificate(client.raw);
    snprintf(out, 64, "nobody");
    if (certificate)
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, out, 64);
    end_clear(&client);
    end_clear(&server);
    return out;
}

static void
issue_live(const char *name)
{
    issue_and_save("live", &ca, (struct wanted){.name = name, .usage = BOTH_USAGES});
}

static void
test_reload_takes_new_files(void)
{
    char name[64];
    struct error *error = NULL;
    issue_live("first");
    struct tls_context *context = open_context("ca.crt", "live");
    CHECK(!reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "first");

    struct end server = {.session = tls_session_new_server(context)};
    struct end client = our_client("ca.crt", "client", "first");
    issue_live("second");
    CHECK(reload(context, &error) && !error);
    CHECK(!reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "second");
    /* A session goes on with what it began with, even without its context. */
    tls_context_close(context);
    talk(&client, &server, 1000);
    check_greeting(&client, &server);
    end_clear(&client);
    end_clear(&server);
}

static void
test_reload_keeps_the_old_on_bad_files(void)
{
    char name[64];
    struct error *error = NULL;
    issue_live("first");
    struct tls_context *context = open_context("ca.crt", "live");

    issue_and_save("spare", &ca, (struct wanted){.name = "second", .usage = BOTH_USAGES});
    must(!rename(at("spare.crt"), at("live.crt")), "rename");
    CHECK(!reload(context, &error));
    CHECK_MENTIONS(error, "the old certificates stay in use: ");
    CHECK_MENTIONS(error, "live.key\" does not match the certificate in");
    CHECK(!reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "first");

    must(!rename(at("spare.key"), at("live.key")), "rename");
    CHECK(reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "second");

    unlink(at("live.key"));
    CHECK(!reload(context, &error));
    CHECK_MENTIONS(error, "live.key\": No such file or directory");
    CHECK(!reload(context, &error) && !error);
    save_text("live.key", "half a k");
    CHECK(!reload(context, &error));
    CHECK_MENTIONS(error, "live.key\" contains no usable private key");
    CHECK_TEXT(name_served(context, name), "second");
    issue_live("third");
    CHECK(reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "third");
    tls_context_close(context);
}

/* It ticks every few milliseconds only. */
static void
wait_for_the_clock_of_files(void)
{
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

/* The same file with as many bytes as before, written in place. */
static void
test_reload_sees_writes_in_place(void)
{
    struct error *error = NULL;
    issue_live("first");
    save_certificate("live-ca.crt", &ca);
    struct tls_context *context = open_context("live-ca.crt", "live");
    wait_for_the_clock_of_files();
    FILE *file = fopen(at("live-ca.crt"), "r+");
    must(file && PEM_write_X509(file, ca.certificate), "write");
    fclose(file);
    CHECK(reload(context, &error) && !error);
    CHECK(!reload(context, &error) && !error);
    tls_context_close(context);
}

/* It could be the end of "Permission denied". */
static void
test_reload_sees_a_change_of_mode(void)
{
    struct error *error = NULL;
    issue_live("first");
    struct tls_context *context = open_context("ca.crt", "live");
    wait_for_the_clock_of_files();
    must(!chmod(at("live.key"), 0400), "chmod");
    CHECK(reload(context, &error) && !error);
    tls_context_close(context);
}

static void
test_reload_changes_the_ca(void)
{
    struct error *error = NULL;
    save_certificate("live-ca.crt", &ca);
    struct tls_context *context = open_context("live-ca.crt", "server");
    save_certificate("live-ca.crt", &evil_ca);
    CHECK(reload(context, &error) && !error);
    struct end server = {.session = tls_session_new_server(context)};
    struct end client = our_client("ca.crt", "client", "controller.host-0");
    talk(&client, &server, 1000);
    CHECK_MENTIONS(server.error, "the peer's certificate is not signed by the CA in");
    end_clear(&client);
    end_clear(&server);
    tls_context_close(context);
}

/* As the kubelet does it: files are links through ..data, which is swapped by one rename. */
static void
test_reload_sees_the_swap_of_a_directory_link(void)
{
    char name[64];
    struct error *error = NULL;
    must(!mkdir(at("..one"), 0700) && !mkdir(at("..two"), 0700), "mkdir");
    issue_and_save("..one/tls", &ca, (struct wanted){.name = "one", .usage = BOTH_USAGES});
    issue_and_save("..two/tls", &ca, (struct wanted){.name = "two", .usage = BOTH_USAGES});
    must(!symlink("..one", at("..data")), "symlink");
    must(!symlink("..data/tls.crt", at("tls.crt")), "symlink");
    must(!symlink("..data/tls.key", at("tls.key")), "symlink");
    struct tls_context *context = open_context("ca.crt", "tls");
    CHECK(!reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "one");

    must(!symlink("..two", at("..data_tmp")), "symlink");
    must(!rename(at("..data_tmp"), at("..data")), "rename");
    CHECK(reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "two");
    tls_context_close(context);
}

/* Put there early, it is told once and taken when its time has come, without another change. */
static void
test_reload_waits_for_a_certificate_that_begins_later(void)
{
    char name[64];
    struct error *error = NULL;
    issue_live("first");
    struct tls_context *context = open_context("ca.crt", "live");
    issue_and_save("live", &ca,
                   (struct wanted){.name = "later", .usage = BOTH_USAGES, .from = 2, .until = DAY});
    CHECK(!reload(context, &error));
    CHECK_MENTIONS(error, "is not valid before 2");
    CHECK(!reload(context, &error) && !error);
    CHECK_TEXT(name_served(context, name), "first");
    bool changed = false;
    for (int i = 0; i < 50 && !changed; i++) {
        struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
        nanosleep(&pause, NULL);
        changed = reload(context, &error);
        CHECK(!error);
    }
    CHECK(changed);
    CHECK_TEXT(name_served(context, name), "later");
    tls_context_close(context);
}

int
main(void)
{
    ends_set_up();
    test_bad_files_are_named();
    test_unreadable_and_oversized_files();
    test_one_file_for_certificate_and_key();
    test_reload_takes_new_files();
    test_reload_keeps_the_old_on_bad_files();
    test_reload_sees_writes_in_place();
    test_reload_sees_a_change_of_mode();
    test_reload_changes_the_ca();
    test_reload_sees_the_swap_of_a_directory_link();
    test_reload_waits_for_a_certificate_that_begins_later();
    ends_clean_up();
    return check_report("test_tls_files");
}
