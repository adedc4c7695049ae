/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of mutual TLS: certificates made on the spot, and two ends joined in memory, of
 * which one may be a bare OpenSSL peer that does what our own side never would.
 */
#ifndef UNIT_TLS_ENDS_H
#define UNIT_TLS_ENDS_H

#include <fts.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "check.h"
#include "rpc/tls/tls.h"

#define DAY (24 * 60 * 60L)
#define BOTH_USAGES "serverAuth,clientAuth"
#define MEGABYTE ((size_t)1 << 20)

/* Set once by ends_set_up. */
static char directory[256];

struct issued {
    X509 *certificate;
    EVP_PKEY *key;
};

struct wanted {
    const char *name;         /* common name */
    const char *second_name;  /* one more common name, or NULL */
    const char *alternatives; /* "DNS:a,IP:1.2.3.4", or NULL */
    const char *usage;        /* NULL: a CA */
    long from, until;         /* seconds from now; both 0: yesterday and in 30 days */
};

static inline void
must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "cannot set up: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static inline void
add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    must(extension && X509_add_ext(certificate, extension, -1), value);
    X509_EXTENSION_free(extension);
}

static inline void
add_name(X509 *certificate, const char *name)
{
    must(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    (const unsigned char *)name, -1, -1, 0),
         name);
}

/* Signed by `issuer`, or by itself when that is NULL. */
static inline struct issued
issue(const struct issued *issuer, struct wanted wanted)
{
    struct issued made = {X509_new(), EVP_EC_gen("P-256")};
    must(made.certificate && made.key, "key");
    if (!issuer)
        issuer = &made;
    X509_set_version(made.certificate, 2);
    static long serial;
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    bool usual = !wanted.from && !wanted.until;
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), usual ? -DAY : wanted.from);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), usual ? 30 * DAY : wanted.until);
    add_name(made.certificate, wanted.name);
    if (wanted.second_name)
        add_name(made.certificate, wanted.second_name);
    X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer->certificate));
    X509_set_pubkey(made.certificate, made.key);
    add_extension(made.certificate, issuer->certificate, NID_basic_constraints,
                  wanted.usage ? "CA:FALSE" : "critical,CA:TRUE");
    if (wanted.usage)
        add_extension(made.certificate, issuer->certificate, NID_ext_key_usage, wanted.usage);
    if (wanted.alternatives)
        add_extension(made.certificate, issuer->certificate, NID_subject_alt_name,
                      wanted.alternatives);
    must(X509_sign(made.certificate, issuer->key, EVP_sha256()) > 0, "signature");
    return made;
}

static inline void
drop(struct issued *issued)
{
    X509_free(issued->certificate);
    EVP_PKEY_free(issued->key);
}

/* A path in the test's directory; good for the next seven calls. */
static inline const char *
at(const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static inline FILE *
open_new(const char *name)
{
    unlink(at(name));
    FILE *file = fopen(at(name), "w");
    must(file != NULL, name);
    return file;
}

static inline void
save_text(const char *name, const char *text)
{
    FILE *file = open_new(name);
    fputs(text, file);
    fclose(file);
}

static inline void
save_certificate(const char *name, const struct issued *issued)
{
    FILE *file = open_new(name);
    must(PEM_write_X509(file, issued->certificate), name);
    fclose(file);
}

static inline void
save_key(const char *name, const struct issued *issued)
{
    FILE *file = open_new(name);
    must(PEM_write_PrivateKey(file, issued->key, NULL, NULL, 0, NULL, NULL), name);
    fclose(file);
}

/* NAME.crt and NAME.key. */
static inline void
save(const char *name, const struct issued *issued)
{
    char file[128];
    snprintf(file, sizeof file, "%s.crt", name);
    save_certificate(file, issued);
    snprintf(file, sizeof file, "%s.key", name);
    save_key(file, issued);
}

static inline void
issue_and_save(const char *file, const struct issued *issuer, struct wanted wanted)
{
    struct issued issued = issue(issuer, wanted);
    save(file, &issued);
    drop(&issued);
}

/* The CA that both sides trust, and another one that gives itself the same name. */
static struct issued ca, evil_ca;

static inline void
make_certificate_with_many_names(void)
{
    struct buffer list AUTO(buffer_clear) = {0};
    for (int i = 0; i < 500; i++)
        buffer_print(&list, "%sDNS:node-%d.a-long-domain.example", i ? "," : "", i);
    issue_and_save(
        "many", &ca,
        (struct wanted){.name = "many", .alternatives = buffer_text(&list), .usage = BOTH_USAGES});
}

static inline void
make_all_certificates(void)
{
    ca = issue(NULL, (struct wanted){.name = "Test CA"});
    evil_ca = issue(NULL, (struct wanted){.name = "Test CA"});
    save("ca", &ca);
    save("evil-ca", &evil_ca);
    struct wanted server = {.name = "controller.host-0", .usage = BOTH_USAGES};
    struct wanted client = {.name = "component.registry", .usage = BOTH_USAGES};
    issue_and_save("server", &ca, server);
    issue_and_save("client", &ca, client);
    issue_and_save("evil-server", &evil_ca, server);
    issue_and_save("evil-client", &evil_ca, client);
    issue_and_save("several", &ca,
                   (struct wanted){.name = "Several",
                                   .alternatives = "DNS:node-1.example,DNS:*.example,"
                                                   "IP:127.0.0.1,IP:::1,email:a@b.example",
                                   .usage = BOTH_USAGES});
    make_certificate_with_many_names();
}

/* One of ours, or a bare OpenSSL one. */
struct end {
    struct tls_session *session;
    SSL *raw;
    struct error *error;     /* ours */
    unsigned long raw_error; /* theirs */
    struct buffer got;
    bool closed;
};

static inline struct tls_context *
open_context(const char *ca_file, const char *name)
{
    char certificate[128], key[128];
    snprintf(certificate, sizeof certificate, "%s.crt", name);
    snprintf(key, sizeof key, "%s.key", name);
    struct tls_context *context = NULL;
    struct error *error =
        tls_context_open(&(struct tls_options){at(ca_file), at(certificate), at(key)}, &context);
    must(!error, error ? error->message : "");
    return context;
}

static inline struct end
our_server(const char *ca_file, const char *name)
{
    struct tls_context *context = open_context(ca_file, name);
    struct end end = {.session = tls_session_new_server(context)};
    tls_context_close(context);
    return end;
}

static inline struct end
our_client(const char *ca_file, const char *name, const char *expected_name)
{
    struct tls_context *context = open_context(ca_file, name);
    struct end end = {.session = tls_session_new_client(context, expected_name, "localhost")};
    tls_context_close(context);
    return end;
}

/* With no rules of its own but to trust everybody; `name` NULL: without a certificate. */
static inline SSL_CTX *
raw_context(const char *name)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    must(context != NULL, "SSL_CTX");
    char file[128];
    if (name) {
        snprintf(file, sizeof file, "%s.crt", name);
        must(SSL_CTX_use_certificate_chain_file(context, at(file)), file);
        snprintf(file, sizeof file, "%s.key", name);
        must(SSL_CTX_use_PrivateKey_file(context, at(file), SSL_FILETYPE_PEM), file);
    }
    return context;
}

/* Takes the context. */
static inline struct end
raw_end(SSL_CTX *context, bool server)
{
    struct end end = {.raw = SSL_new(context)};
    SSL_CTX_free(context);
    must(end.raw != NULL, "SSL");
    SSL_set_bio(end.raw, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (server)
        SSL_set_accept_state(end.raw);
    else
        SSL_set_connect_state(end.raw);
    return end;
}

static inline void
end_clear(struct end *end)
{
    tls_session_free(end->session);
    SSL_free(end->raw);
    error_free(end->error);
    buffer_clear(&end->got);
    *end = (struct end){0};
}

static inline bool
end_is_broken(const struct end *end)
{
    return end->error || end->raw_error;
}

/* One read; says whether there may be more. */
static inline bool
end_read(struct end *end)
{
    size_t got = 0;
    uint8_t *room = buffer_reserve(&end->got, 5000);
    if (end->session) {
        end->error = tls_session_read(end->session, room, 5000, &got, &end->closed);
    } else if (!SSL_read_ex(end->raw, room, 5000, &got)) {
        int reason = SSL_get_error(end->raw, 0);
        end->closed = reason == SSL_ERROR_ZERO_RETURN;
        if (reason == SSL_ERROR_SSL)
            end->raw_error = ERR_peek_error();
        ERR_clear_error();
    }
    CHECK_NUMBER(ERR_peek_error(), 0);
    end->got.size += got;
    return got > 0;
}

static inline void
end_feed(struct end *end, const uint8_t *bytes, size_t size)
{
    if (end_is_broken(end))
        return;
    if (end->raw)
        BIO_write(SSL_get_rbio(end->raw), bytes, (int)size);
    else
        end->error = tls_session_feed(end->session, bytes, size);
    while (!end_is_broken(end) && end_read(end))
        ;
}

static inline void
end_take(struct end *end, struct buffer *out)
{
    if (end->session) {
        tls_session_take(end->session, out);
        return;
    }
    size_t pending = BIO_ctrl_pending(SSL_get_wbio(end->raw));
    int got = BIO_read(SSL_get_wbio(end->raw), buffer_reserve(out, pending + 1), (int)pending);
    out->size += got > 0 ? (size_t)got : 0;
}

/* Carries what `from` has to `to`, in pieces of growing odd sizes up to `piece`. */
static inline bool
carry(struct end *from, struct end *to, size_t piece)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    end_take(from, &bytes);
    size_t size = 1;
    for (size_t done = 0; done < bytes.size;) {
        size = size * 2 + 1 < piece ? size * 2 + 1 : piece;
        size_t now = size < bytes.size - done ? size : bytes.size - done;
        end_feed(to, bytes.bytes + done, now);
        done += now;
    }
    return bytes.size > 0;
}

/* Until both are silent. */
static inline void
talk(struct end *client, struct end *server, size_t piece)
{
    if (!end_is_broken(client))
        end_read(client);
    int rounds = 0;
    bool busy = true;
    while (busy && rounds++ < 1000) {
        bool forth = carry(client, server, piece);
        bool back = carry(server, client, piece);
        busy = forth || back;
    }
    CHECK(!busy);
}

static inline bool
both_established(const struct end *client, const struct end *server)
{
    return tls_session_is_established(client->session) &&
           tls_session_is_established(server->session);
}

static inline void
check_mentions(const struct error *error, const char *text, const char *file, int line)
{
    if (!check_count(error && strstr(error->message, text), file, line))
        fprintf(stderr, "\"%s\" does not mention \"%s\"\n", error ? error->message : "no error",
                text);
}
#define CHECK_MENTIONS(error, text) check_mentions((error), (text), __FILE__, __LINE__)

/* What a bare end was told by ours. */
#define CHECK_ALERT(raw, alert)                                                                    \
    CHECK_NUMBER(ERR_GET_REASON((raw)->raw_error), SSL_AD_REASON_OFFSET + (alert))

/* Sends a few bytes each way, to see that the connection works. */
static inline void
check_greeting(struct end *client, struct end *server)
{
    CHECK(!end_is_broken(client) && !end_is_broken(server));
    if (end_is_broken(client) || end_is_broken(server))
        return;
    size_t written;
    struct end *ends[] = {client, server};
    for (int i = 0; i < 2; i++) {
        ends[i]->got.size = 0;
        if (ends[i]->session && tls_session_is_established(ends[i]->session))
            CHECK(!tls_session_write(ends[i]->session, i ? "pong" : "ping", 4));
        else
            CHECK(ends[i]->raw && SSL_write_ex(ends[i]->raw, i ? "pong" : "ping", 4, &written));
    }
    talk(client, server, 100);
    CHECK_TEXT(buffer_text(&server->got), "ping");
    CHECK_TEXT(buffer_text(&client->got), "pong");
}

/* A client of ours that expects a name, and a server of ours that has the certificate. */
static inline void
check_name(const char *server_name, const char *expected, bool good)
{
    struct end server = our_server("ca.crt", server_name);
    struct end client = our_client("ca.crt", "client", expected);
    talk(&client, &server, 1000);
    CHECK_NUMBER(tls_session_is_established(client.session), good);
    CHECK_NUMBER(tls_session_peer_is(client.session, expected), good);
    CHECK_NUMBER(client.error == NULL, good);
    CHECK_NUMBER(server.error == NULL, good);
    if (good)
        check_greeting(&client, &server);
    end_clear(&client);
    end_clear(&server);
}

static inline void
remove_directory(void)
{
    char *const roots[] = {directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    must(tree != NULL, directory);
    FTSENT *entry;
    while ((entry = fts_read(tree)))
        if (entry->fts_info != FTS_D)
            must(!remove(entry->fts_path), entry->fts_path);
    fts_close(tree);
}

static inline void
ends_set_up(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/test_tls.XXXXXX", base ? base : "/tmp");
    must(mkdtemp(directory) != NULL, directory);
    make_all_certificates();
}

static inline void
ends_clean_up(void)
{
    drop(&ca);
    drop(&evil_ca);
    remove_directory();
}

#endif
