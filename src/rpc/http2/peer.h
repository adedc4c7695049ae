/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity of the peer of a connection. Created once per connection and shared by its calls;
 * immutable once the connection is established.
 */
#ifndef RPC_HTTP2_PEER_H
#define RPC_HTTP2_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "rpc/loop/admission.h"

struct peer {
    unsigned references;  /* loop thread only */
    char address[300];    /* "unix:pid=12,uid=0" or "127.0.0.1:80" */
    bool has_credentials; /* unix socket: pid, uid and gid are known (SO_PEERCRED) */
    pid_t pid;
    uid_t uid;
    gid_t gid;
    struct account *account; /* charged for the memory that its calls use */
    size_t name_count; /* common name and subject alternative names of the verified certificate */
    char **names;
};

/* Describes the peer of a connected socket; one reference. Takes over the account. */
struct peer *peer_new(int fd, struct account *account);
struct peer *peer_share(struct peer *peer);
void peer_release(struct peer *peer);
void peer_set_names(struct peer *peer, const char *const *names, size_t count);

#endif
