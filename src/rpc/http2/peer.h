/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a connection. Made once per connection, shared by its calls; never changes. */
#ifndef RPC_HTTP2_PEER_H
#define RPC_HTTP2_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "rpc/loop/admission.h"

struct peer {
    unsigned references;  /* counted on the loop thread */
    char address[300];    /* "unix:pid=12,uid=0" or "127.0.0.1:80" */
    bool has_credentials; /* a unix socket: the three below are known (SO_PEERCRED) */
    pid_t pid;
    uid_t uid;
    gid_t gid;
    struct account *account; /* what its calls make the process hold */
    size_t
        name_count; /* names in its verified certificate: common name and subject alternative names */
    char **names;
};

/* Of a connected socket, with one reference. Takes the account. */
struct peer *peer_new(int fd, struct account *account);
struct peer *peer_share(struct peer *peer);
void peer_release(struct peer *peer);
void peer_set_names(struct peer *peer, const char *const *names, size_t count);

#endif
