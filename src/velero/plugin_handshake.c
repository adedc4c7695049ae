/* SPDX-License-Identifier: Apache-2.0 */
/* Socket and handshake line: see plugin_handshake.h. */
#include "velero/plugin_handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/files.h"
#include "rpc/tls/tls_identity.h"
#include "velero/velero.h"

/* ---- the socket ---- */

/* An empty variable is none. */
static const char *
choose_parent(void)
{
    const char *parent = getenv(VELERO_SOCKET_DIRECTORY);
    if (!parent || !parent[0])
        parent = getenv("TMPDIR");
    return parent && parent[0] ? parent : "/tmp";
}

/* A new directory that only this user can enter, with room for the socket's name in its path. */
static struct error *
make_directory(struct handshake *handshake)
{
    const char *parent = choose_parent();
    int size = snprintf(handshake->directory, sizeof handshake->directory - strlen("/s"),
                        "%s/plugin-XXXXXX", parent);
    int errnum = size < (int)(sizeof handshake->directory - strlen("/s")) ? 0 : ENAMETOOLONG;
    if (!errnum && !mkdtemp(handshake->directory))
        errnum = errno;
    if (!errnum)
        return NULL;
    handshake->directory[0] = '\0';
    struct error *error = error_from_errno(
        errnum, "cannot make a directory for the socket in \"%s\"; set TMPDIR to another", parent);
    error->code = CODE_FAILED_PRECONDITION;
    return error;
}

/* ---- certificates ---- */

/* The name of a file in memory with these bytes, as long as its descriptor is open. */
static struct error *
write_memory(const void *bytes, size_t size, int *fd, char path[32])
{
    *fd = memfd_create("skycap-velero", MFD_CLOEXEC);
    if (*fd < 0 || write(*fd, bytes, size) != (ssize_t)size)
        return error_from_errno(errno, "cannot keep a certificate in memory");
    snprintf(path, 32, "/proc/self/fd/%d", *fd);
    return NULL;
}

static struct error *
open_tls(struct handshake *handshake, const char *host, struct tls_identity *identity)
{
    int ca AUTO(files_close) = -1;
    int certificate AUTO(files_close) = -1;
    int key AUTO(files_close) = -1;
    char paths[3][32];
    struct error *error = write_memory(host, strlen(host), &ca, paths[0]);
    if (!error)
        error = write_memory(identity->certificate.bytes, identity->certificate.size, &certificate,
                             paths[1]);
    if (!error)
        error = write_memory(identity->key.bytes, identity->key.size, &key, paths[2]);
    const struct tls_options files = {paths[0], paths[1], paths[2]};
    return error ? error : tls_context_open(&files, &handshake->tls);
}

/* Appends our certificate to the line. */
static struct error *
use_certificates(struct handshake *handshake, const char *host)
{
    struct tls_identity identity AUTO(tls_identity_clear) = {0};
    struct error *error = tls_identity_make(&identity);
    if (!error)
        error = open_tls(handshake, host, &identity);
    if (!error)
        base64_encode(identity.der.bytes, identity.der.size, false, &handshake->line);
    return error_wrap(error, "TLS to the host");
}

/* ---- the line ---- */

struct error *
handshake_listen(struct handshake *handshake, struct server *server)
{
    const char *certificate = getenv(VELERO_CLIENT_CERTIFICATE);
    struct error *error = make_directory(handshake);
    if (error)
        return error;
    char address[HANDSHAKE_PATH_SIZE + 8];
    snprintf(address, sizeof address, "unix:%s/s", handshake->directory);
    buffer_print(&handshake->line, "%d|%d|unix|%s/s|grpc|", VELERO_CORE_VERSION,
                 VELERO_PROTOCOL_VERSION, handshake->directory);
    if (certificate && certificate[0])
        error = use_certificates(handshake, certificate);
    if (error)
        return error;
    /* One that has set the variable expects a seventh field. */
    if (getenv(VELERO_MULTIPLEX))
        buffer_append_text(&handshake->line, "|false");
    buffer_append_byte(&handshake->line, '\n');
    return server_listen(server, address, &(struct listen_options){.tls = handshake->tls});
}

struct error *
handshake_say(const struct handshake *handshake, int fd)
{
    if (write(fd, handshake->line.bytes, handshake->line.size) == (ssize_t)handshake->line.size)
        return NULL;
    return error_from_errno(errno, "cannot write to the host");
}

void
handshake_clear(struct handshake *handshake)
{
    char socket[HANDSHAKE_PATH_SIZE + 2];
    tls_context_close(handshake->tls);
    buffer_clear(&handshake->line);
    if (!handshake->directory[0])
        return;
    snprintf(socket, sizeof socket, "%s/s", handshake->directory);
    unlink(socket);
    rmdir(handshake->directory);
}
