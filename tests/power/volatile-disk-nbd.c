/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk of volatile_disk.h over NBD on a unix socket, for one client (qemu).
 *
 *     volatile-disk-nbd IMAGE STATISTICS honest|lying SOCKET
 *
 * When the client is gone, which is the power cut, a line "MODE SEED" is read from stdin.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "volatile_disk.h"

#define PACKED __attribute__((packed))
#define SERVER_FLAGS 3 /* fixed newstyle, no zeroes */
#define CLIENT_NO_ZEROES 2
/* Has flags, flush, FUA, trim, write zeroes. */
#define EXPORT_FLAGS (1 | 4 | 8 | 32 | 64)
#define MAX_OPTION_BYTES 65536
#define MAX_REQUEST_BYTES (64u << 20)
#define COMMAND_FUA 1

enum option { OPTION_EXPORT_NAME = 1, OPTION_ABORT = 2, OPTION_INFO = 6, OPTION_GO = 7 };
enum option_reply { REPLY_ACK = 1, REPLY_INFO = 3 };
#define REPLY_UNSUPPORTED 0x80000001u
enum command {
    COMMAND_READ,
    COMMAND_WRITE,
    COMMAND_DISCONNECT,
    COMMAND_FLUSH,
    COMMAND_TRIM,
    COMMAND_WRITE_ZEROES = 6,
};

struct option_head {
    uint64_t magic;
    uint32_t option;
    uint32_t count;
} PACKED;

struct option_answer {
    uint64_t magic;
    uint32_t option;
    uint32_t type;
    uint32_t count;
} PACKED;

struct export_info {
    uint16_t type;
    uint64_t size;
    uint16_t flags;
} PACKED;

struct request {
    uint32_t magic;
    uint16_t flags;
    uint16_t type;
    uint64_t cookie;
    uint64_t offset;
    uint32_t length;
} PACKED;

struct reply {
    uint32_t magic;
    uint32_t error;
    uint64_t cookie;
} PACKED;

struct connection {
    int socket;
    struct disk *disk;
    uint8_t *buffer; /* of MAX_REQUEST_BYTES */
};

/* False when the client is gone. */
static bool
receive(const struct connection *it, void *to, size_t count)
{
    for (char *at = to; count;) {
        ssize_t got = recv(it->socket, at, count, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        count -= (size_t)got;
    }
    return true;
}

static bool
send_all(const struct connection *it, const void *from, size_t count)
{
    for (const char *at = from; count;) {
        ssize_t sent = send(it->socket, at, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        count -= (size_t)sent;
    }
    return true;
}

/* ---- the handshake ---- */

static bool
answer_option(const struct connection *it, uint32_t option, uint32_t type, const void *data,
              uint32_t count)
{
    struct option_answer head = {htobe64(0x3e889045565a9ull), htobe32(option), htobe32(type),
                                 htobe32(count)};
    return send_all(it, &head, sizeof head) && send_all(it, data, count);
}

/* The oldest way to begin: without an answer of its own. */
static bool
send_export(const struct connection *it, uint32_t client_flags)
{
    struct {
        uint64_t size;
        uint16_t flags;
        uint8_t zeroes[124];
    } PACKED export = {htobe64(disk_size(it->disk)), htobe16(EXPORT_FLAGS), {0}};
    return send_all(it, &export, client_flags & CLIENT_NO_ZEROES ? 10 : sizeof export);
}

/* Sets `begins` when the client may send requests. */
static bool
handle_option(const struct connection *it, uint32_t option, uint32_t client_flags, bool *begins)
{
    struct export_info info = {0, htobe64(disk_size(it->disk)), htobe16(EXPORT_FLAGS)};
    switch (option) {
    case OPTION_EXPORT_NAME:
        *begins = true;
        return send_export(it, client_flags);
    case OPTION_INFO:
    case OPTION_GO:
        *begins = option == OPTION_GO;
        return answer_option(it, option, REPLY_INFO, &info, sizeof info) &&
               answer_option(it, option, REPLY_ACK, NULL, 0);
    case OPTION_ABORT:
        return false;
    default:
        return answer_option(it, option, REPLY_UNSUPPORTED, NULL, 0);
    }
}

static bool
shake_hands(const struct connection *it)
{
    struct {
        uint64_t magic;
        uint64_t option_magic;
        uint16_t flags;
    } PACKED hello = {htobe64(0x4e42444d41474943ull), htobe64(0x49484156454f5054ull),
                      htobe16(SERVER_FLAGS)};
    uint32_t client_flags;
    bool begins = false;
    if (!send_all(it, &hello, sizeof hello) || !receive(it, &client_flags, sizeof client_flags))
        return false;
    while (!begins) {
        struct option_head head;
        if (!receive(it, &head, sizeof head) || be32toh(head.count) > MAX_OPTION_BYTES ||
            !receive(it, it->buffer, be32toh(head.count)) ||
            !handle_option(it, be32toh(head.option), be32toh(client_flags), &begins))
            return false;
    }
    return true;
}

/* ---- requests ---- */

/* Returns what stands in the reply. */
static uint32_t
do_command(const struct connection *it, uint16_t type, uint64_t offset, uint32_t length)
{
    if (!disk_holds(it->disk, offset, length))
        return EINVAL;
    switch (type) {
    case COMMAND_READ:
        disk_read(it->disk, it->buffer, offset, length);
        return 0;
    case COMMAND_WRITE:
        disk_write(it->disk, it->buffer, offset, length);
        return 0;
    case COMMAND_FLUSH:
        disk_flush(it->disk);
        return 0;
    case COMMAND_TRIM:
    case COMMAND_WRITE_ZEROES:
        disk_zero(it->disk, offset, length);
        return 0;
    default:
        return EINVAL;
    }
}

/* False when the client is gone. */
static bool
serve_one(const struct connection *it)
{
    struct request request;
    if (!receive(it, &request, sizeof request))
        return false;
    uint16_t type = be16toh(request.type);
    uint64_t offset = be64toh(request.offset);
    uint32_t length = be32toh(request.length);
    bool has_data = type == COMMAND_READ || type == COMMAND_WRITE;
    if (be32toh(request.magic) != 0x25609513u || type == COMMAND_DISCONNECT ||
        (has_data && length > MAX_REQUEST_BYTES))
        return false;
    if (type == COMMAND_WRITE && !receive(it, it->buffer, length))
        return false;
    uint32_t error = do_command(it, type, offset, length);
    if (!error && be16toh(request.flags) & COMMAND_FUA && type != COMMAND_READ)
        disk_write_through(it->disk, offset, length);
    struct reply reply = {htobe32(0x67446698u), htobe32(error), request.cookie};
    return send_all(it, &reply, sizeof reply) &&
           (type != COMMAND_READ || error || send_all(it, it->buffer, length));
}

static int
accept_client(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listening, 1) != 0)
        return -1;
    return accept(listening, NULL, NULL);
}

int
main(int count, char **arguments)
{
    char mode[16];
    unsigned seed;
    if (count != 5) {
        fprintf(stderr, "usage: volatile-disk-nbd IMAGE STATISTICS honest|lying SOCKET\n");
        return 2;
    }
    struct connection it = {
        .disk = disk_open(arguments[1], strcmp(arguments[3], "lying") == 0),
        .buffer = malloc(MAX_REQUEST_BYTES),
        .socket = accept_client(arguments[4]),
    };
    if (it.socket < 0 || !it.buffer) {
        perror(arguments[4]);
        return 1;
    }
    if (shake_hands(&it)) {
        while (serve_one(&it))
            ;
    }
    if (scanf("%15s %u", mode, &seed) != 2)
        return 1; /* there is no cut, only an end */
    disk_cut(it.disk, mode, seed, arguments[2]);
    return 0;
}
