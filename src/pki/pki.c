/* SPDX-License-Identifier: Apache-2.0 */
/* A small certificate authority: see pki.h. */
#include "pki/pki.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/new_file.h"
#include "pki/pem.h"

/* Limit of X.509 for a common name. A longer name becomes an alternative name only. */
#define COMMON_NAME_LIMIT 64

/* Leaves room for ".crt" and the suffix of a temporary file in a file name. */
#define NAME_LIMIT 220

#define SERIAL_BITS 128
#define DAY_S ((time_t)24 * 60 * 60)

/* Allows for peers whose clocks are slow. */
#define BACKDATE_S ((time_t)5 * 60)

struct authority {
    X509 *certificate;
    EVP_PKEY *key;
};

static void
authority_clear(struct authority *authority)
{
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
}

static void
free_certificate(X509 **certificate)
{
    X509_free(*certificate);
}

static struct error *
failure(const char *what)
{
    return error_new(CODE_INTERNAL, "OpenSSL cannot %s: %s", what, pem_take_reason());
}

static char *
path_of(const char *directory, const char *name, const char *ending)
{
    struct buffer path = {0};
    buffer_print(&path, "%s/%s%s", directory, name, ending);
    buffer_text(&path);
    return (char *)path.bytes;
}

/* ---- validation ---- */

static bool
is_host_name(const char *text)
{
    if (!isalnum((unsigned char)text[0]) && text[0] != '_')
        return false;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            return false;
    return strlen(text) <= NAME_LIMIT;
}

static struct error *
check_name(const char *name)
{
    if (!is_host_name(name))
        return error_new(
            CODE_INVALID_ARGUMENT,
            "\"%.*s\" cannot be a name: use at most %d letters, digits, '.', '_' and '-', "
            "and do not begin with '.' or '-'",
            NAME_LIMIT, name, NAME_LIMIT);
    if (strcmp(name, "ca") == 0)
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"ca\" cannot be a name: the authority's own files have it");
    return NULL;
}

static struct error *
check_days(unsigned long days)
{
    if (days >= 1 && days <= PKI_MAX_DAYS)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%lu days: the validity must be 1 to %lu days", days,
                     PKI_MAX_DAYS);
}

static bool
is_address(const char *text)
{
    struct in6_addr room;
    return inet_pton(AF_INET, text, &room) == 1 || inet_pton(AF_INET6, text, &room) == 1;
}

/* Prints "DNS:name,IP:address,...", the format that OpenSSL parses. */
static struct error *
print_alternatives(const struct pki_request *request, struct buffer *out)
{
    buffer_print(out, "DNS:%s", request->name);
    for (size_t i = 0; i < request->alternatives.count; i++) {
        const char *text = request->alternatives.items[i];
        if (!is_address(text) && !is_host_name(text))
            return error_new(CODE_INVALID_ARGUMENT,
                             "\"%s\" is neither a host name nor an IP address (wildcards are not "
                             "supported)",
                             text);
        buffer_print(out, ",%s:%s", is_address(text) ? "IP" : "DNS", text);
    }
    return NULL;
}

/* ---- certificates ---- */

struct extension {
    int nid;
    const char *value;
};

static struct error *
set_serial(X509 *certificate)
{
    BIGNUM *number = BN_new();
    bool is_set = number && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
                  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return is_set ? NULL : failure("create a serial number");
}

static bool
set_subject(X509 *certificate, const char *name)
{
    return strlen(name) > COMMON_NAME_LIMIT ||
           X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                      MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);
}

/*
 * `issuer` may be the certificate itself. Set the public keys first: key identifiers depend on
 * them.
 */
static struct error *
add_extensions(X509 *certificate, X509 *issuer, const struct extension *table, size_t count)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        X509_EXTENSION *made = X509V3_EXT_conf_nid(NULL, &context, table[i].nid, table[i].value);
        bool is_added = made && X509_add_ext(certificate, made, -1);
        X509_EXTENSION_free(made);
        if (!is_added)
            return failure("add an extension to a certificate");
    }
    return NULL;
}

/* Creates a certificate without extensions and signature. */
static struct error *
make_certificate(const char *name, EVP_PKEY *key, const X509_NAME *issuer, time_t until, X509 **out)
{
    X509 *certificate AUTO(free_certificate) = X509_new();
    if (!certificate)
        memory_exhausted();
    struct error *error = set_serial(certificate);
    if (error)
        return error;
    if (!X509_set_version(certificate, X509_VERSION_3) || !set_subject(certificate, name) ||
        !X509_set_issuer_name(certificate, issuer ? issuer : X509_get_subject_name(certificate)) ||
        !ASN1_TIME_set(X509_getm_notBefore(certificate), time(NULL) - BACKDATE_S) ||
        !ASN1_TIME_set(X509_getm_notAfter(certificate), until) ||
        !X509_set_pubkey(certificate, key))
        return failure("fill in a certificate");
    *out = STEAL(certificate);
    return NULL;
}

static struct error *
sign(X509 *certificate, EVP_PKEY *key)
{
    return X509_sign(certificate, key, EVP_sha256()) ? NULL : failure("sign a certificate");
}

static struct error *
make_key(EVP_PKEY **out)
{
    *out = EVP_EC_gen("P-256");
    return *out ? NULL : failure("create a key");
}

/* ---- files ---- */

static struct error *
write_key(const EVP_PKEY *key, const char *path, struct new_file *out)
{
    BIO *bio AUTO(pem_free_bio) = BIO_new(BIO_s_secmem());
    char *bytes;
    if (!bio || !PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
        return failure("write a key");
    long size = BIO_get_mem_data(bio, &bytes);
    return new_file_write(out, path, 0600, bytes, (size_t)size);
}

static struct error *
write_certificate(const X509 *certificate, const char *path, struct new_file *out)
{
    BIO *bio AUTO(pem_free_bio) = BIO_new(BIO_s_mem());
    char *bytes;
    if (!bio || !PEM_write_bio_X509(bio, certificate))
        return failure("write a certificate");
    long size = BIO_get_mem_data(bio, &bytes);
    return new_file_write(out, path, 0644, bytes, (size_t)size);
}

static struct error *
save(const X509 *certificate, const EVP_PKEY *key, bool replaces, const struct pki_made *made)
{
    struct new_file new_key AUTO(new_file_clear) = {0};
    struct new_file new_certificate AUTO(new_file_clear) = {0};
    struct error *error = write_key(key, made->key_file, &new_key);
    if (!error)
        error = write_certificate(certificate, made->certificate_file, &new_certificate);
    if (!error)
        error = new_file_put(&new_key, replaces);
    return error ? error : new_file_put(&new_certificate, replaces);
}

/* Checked before anything is created: half a pair would be useless. */
static struct error *
check_absent(const struct pki_made *made)
{
    const char *const paths[] = {made->key_file, made->certificate_file};
    struct stat status;
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (lstat(paths[i], &status) == 0)
            return error_new(CODE_ALREADY_EXISTS, "\"%s\" exists already", paths[i]);
    return NULL;
}

static struct pki_made
paths_of(const char *directory, const char *name)
{
    return (struct pki_made){
        .certificate_file = path_of(directory, name, ".crt"),
        .key_file = path_of(directory, name, ".key"),
    };
}

void
pki_clear_made(struct pki_made *made)
{
    free(made->certificate_file);
    free(made->key_file);
    *made = (struct pki_made){0};
}

/* ---- authority ---- */

static struct error *
make_root(const char *name, time_t until, struct authority *out)
{
    static const struct extension extensions[] = {
        {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
        {NID_key_usage, "critical,keyCertSign,cRLSign"},
        {NID_subject_key_identifier, "hash"},
    };
    struct error *error = make_key(&out->key);
    if (!error)
        error = make_certificate(name, out->key, NULL, until, &out->certificate);
    if (!error)
        error =
            add_extensions(out->certificate, out->certificate, extensions, COUNT_OF(extensions));
    return error ? error : sign(out->certificate, out->key);
}

struct error *
pki_make_authority(const char *directory, const char *name, unsigned long days,
                   struct pki_made *out)
{
    struct authority authority AUTO(authority_clear) = {0};
    *out = paths_of(directory, "ca");
    struct error *error = check_days(days);
    if (!error && (!name[0] || strlen(name) > COMMON_NAME_LIMIT))
        error = error_new(CODE_INVALID_ARGUMENT, "the authority's name must have 1 to %d bytes",
                          COMMON_NAME_LIMIT);
    if (error)
        return error;
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return error_from_errno(errno, "cannot create the directory \"%s\"", directory);
    out->valid_until = time(NULL) + (time_t)days * DAY_S;
    error = check_absent(out);
    if (!error)
        error = make_root(name, out->valid_until, &authority);
    return error ? error : save(authority.certificate, authority.key, false, out);
}

/* ---- issuing ---- */

static struct error *
check_authority(const struct authority *authority, const char *path)
{
    char text[32];
    time_t until = pem_read_time(X509_get0_notAfter(authority->certificate));
    if (!X509_check_private_key(authority->certificate, authority->key)) {
        ERR_clear_error();
        return error_new(CODE_FAILED_PRECONDITION,
                         "the private key next to \"%s\" does not match the certificate", path);
    }
    if (X509_check_ca(authority->certificate) != 1)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the certificate in \"%s\" is not a CA certificate", path);
    if (time(NULL) >= until)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the authority in \"%s\" expired at %s; create a new one", path,
                         pem_print_time(until, text));
    return NULL;
}

static struct error *
open_authority(const char *directory, struct authority *out)
{
    char *certificate_file AUTO(memory_cleanup) = path_of(directory, "ca", ".crt");
    char *key_file AUTO(memory_cleanup) = path_of(directory, "ca", ".key");
    STACK_OF(X509) * certificates AUTO(pem_free_certificates) = NULL;
    struct error *error = pem_load_certificates(certificate_file, &certificates);
    if (!error)
        error = pem_load_key(key_file, &out->key);
    if (error)
        return error;
    out->certificate = sk_X509_shift(certificates);
    return check_authority(out, certificate_file);
}

static struct error *
make_leaf(const struct pki_request *request, const struct authority *authority, EVP_PKEY *key,
          time_t until, X509 **out)
{
    struct buffer alternatives AUTO(buffer_clear) = {0};
    /* Without a subject, the alternative names must be critical (RFC 5280, 4.2.1.6). */
    if (strlen(request->name) > COMMON_NAME_LIMIT)
        buffer_append_text(&alternatives, "critical,");
    struct error *error = print_alternatives(request, &alternatives);
    if (error)
        return error;
    const struct extension extensions[] = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, "serverAuth,clientAuth"},
        {NID_subject_key_identifier, "hash"},
        {NID_authority_key_identifier, "keyid"},
        {NID_subject_alt_name, buffer_text(&alternatives)},
    };
    error = make_certificate(request->name, key, X509_get_subject_name(authority->certificate),
                             until, out);
    if (!error)
        error = add_extensions(*out, authority->certificate, extensions, COUNT_OF(extensions));
    return error ? error : sign(*out, authority->key);
}

/* Ends no later than the authority: peers would refuse it after that. */
static time_t
validity_end(const struct pki_request *request, const struct authority *authority)
{
    time_t wanted = time(NULL) + (time_t)request->days * DAY_S;
    time_t limit = pem_read_time(X509_get0_notAfter(authority->certificate));
    return wanted < limit ? wanted : limit;
}

static struct error *
issue(const struct pki_request *request, struct pki_made *out)
{
    struct authority authority AUTO(authority_clear) = {0};
    EVP_PKEY *key AUTO(pem_free_key) = NULL;
    X509 *certificate AUTO(free_certificate) = NULL;
    struct error *error = open_authority(request->authority, &authority);
    if (!error)
        error = make_key(&key);
    if (error)
        return error;
    out->valid_until = validity_end(request, &authority);
    error = make_leaf(request, &authority, key, out->valid_until, &certificate);
    return error ? error : save(certificate, key, request->replaces, out);
}

struct error *
pki_issue(const struct pki_request *request, struct pki_made *out)
{
    *out = (struct pki_made){0};
    struct error *error = check_name(request->name);
    if (!error)
        error = check_days(request->days);
    if (error)
        return error;
    *out = paths_of(request->directory, request->name);
    if (!request->replaces)
        error = check_absent(out);
    return error ? error : issue(request, out);
}
