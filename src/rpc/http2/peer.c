/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of the peer of a connection: see peer.h. */
#include "rpc/http2/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/memory.h"

static void
describe_unix(struct peer *peer, int fd)
{
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        snprintf(peer->address, sizeof peer->address, "unix:");
        return;
    }
    peer->has_credentials = true;
    peer->pid = credentials.pid;
    peer->uid = credentials.uid;
    peer->gid = credentials.gid;
    snprintf(peer->address, sizeof peer->address, "unix:pid=%d,uid=%u", (int)peer->pid,
             (unsigned)peer->uid);
}

static void
describe_inet(struct peer *peer, const struct sockaddr_storage *from)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
        snprintf(peer->address, sizeof peer->address, "%s:%u", text, ntohs(v4->sin_port));
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
        snprintf(peer->address, sizeof peer->address, "[%s]:%u", text, ntohs(v6->sin6_port));
    }
}

struct peer *
peer_new(int fd, struct account *account)
{
    struct peer *peer = memory_zeroed(sizeof *peer);
    peer->references = 1;
    peer->account = account;
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    if (getpeername(fd, (struct sockaddr *)&from, &size) != 0)
        snprintf(peer->address, sizeof peer->address, "gone");
    else if (from.ss_family == AF_UNIX)
        describe_unix(peer, fd);
    else
        describe_inet(peer, &from);
    return peer;
}

struct peer *
peer_share(struct peer *peer)
{
    peer->references++;
    return peer;
}

void
peer_release(struct peer *peer)
{
    if (!peer || --peer->references)
        return;
    for (size_t i = 0; i < peer->name_count; i++)
        free(peer->names[i]);
    free(peer->names);
    account_release(peer->account);
    free(peer);
}

void
peer_set_names(struct peer *peer, const char *const *names, size_t count)
{
    peer->names = memory_new(count * sizeof *peer->names);
    for (size_t i = 0; i < count; i++)
        peer->names[i] = memory_string(names[i]);
    peer->name_count = count;
}
