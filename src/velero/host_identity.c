/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutual TLS with plugins: see host_identity.h.
 *
 * The plugin trusts an authority that has signed nothing but the client's certificate. One
 * self-signed certificate would do for plugins in Go; others refuse an authority as a client.
 */
#include "velero/host_identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/files.h"
#include "base/memory.h"
#include "pki/pki.h"

#define DAYS 2
#define MAX_PEM_BYTES (16u << 10)
#define LINE_CHARACTERS 64u
#define PLUGIN_FILE "plugin.crt"

static struct error *
read_pem(const char *path, struct buffer *out)
{
    size_t size;
    struct error *error =
        files_read(AT_FDCWD, path, buffer_reserve(out, MAX_PEM_BYTES), MAX_PEM_BYTES, &size);
    if (!error)
        out->size += size;
    return error;
}

struct error *
host_identity_make(const char *directory, struct host_identity *out)
{
    struct pki_made authority AUTO(pki_clear_made) = {0}, pair AUTO(pki_clear_made) = {0};
    struct pki_request request = {
        .authority = directory, .directory = directory, .name = "host", .days = DAYS};
    *out = (struct host_identity){0};
    struct error *error = pki_make_authority(directory, "skycap velero host", DAYS, &authority);
    if (!error)
        error = pki_issue(&request, &pair);
    if (!error)
        error = read_pem(authority.certificate_file, &out->pem);
    if (error)
        return error_wrap(error, "make certificates for the plugins");
    out->certificate_file = STEAL(pair.certificate_file);
    out->key_file = STEAL(pair.key_file);
    return NULL;
}

void
host_identity_clear(struct host_identity *identity)
{
    buffer_clear(&identity->pem);
    free(identity->certificate_file);
    free(identity->key_file);
}

static void
print_pem(const struct buffer *der, struct buffer *out)
{
    struct buffer text AUTO(buffer_clear) = {0};
    base64_encode(der->bytes, der->size, true, &text);
    buffer_append_text(out, "-----BEGIN CERTIFICATE-----\n");
    for (size_t at = 0; at < text.size; at += LINE_CHARACTERS) {
        size_t left = text.size - at;
        buffer_append(out, text.bytes + at, left < LINE_CHARACTERS ? left : LINE_CHARACTERS);
        buffer_append_byte(out, '\n');
    }
    buffer_append_text(out, "-----END CERTIFICATE-----\n");
}

struct error *
host_identity_trust(const struct host_identity *identity, const struct buffer *certificate,
                    const char *directory, struct tls_context **out)
{
    struct buffer pem AUTO(buffer_clear) = {0}, path AUTO(buffer_clear) = {0};
    int parent AUTO(files_close) = files_open_directory(AT_FDCWD, directory);
    print_pem(certificate, &pem);
    buffer_print(&path, "%s/%s", directory, PLUGIN_FILE);
    struct error *error = files_replace(parent, PLUGIN_FILE, pem.bytes, pem.size);
    if (error)
        return error;
    struct tls_options options = {.ca_file = buffer_text(&path),
                                  .certificate_file = identity->certificate_file,
                                  .key_file = identity->key_file};
    return error_wrap(tls_context_open(&options, out), "use the plugin's certificate");
}
