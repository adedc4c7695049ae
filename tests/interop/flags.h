/* SPDX-License-Identifier: Apache-2.0 */
/* What the interop programs share: flags, and a runtime that runs until SIGTERM. */
#ifndef INTEROP_FLAGS_H
#define INTEROP_FLAGS_H

#include "base/log.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/server.h"
#include "rpc/tls/tls.h"

#define MAX_LISTEN 4

struct flags {
    const char *listen[MAX_LISTEN];
    size_t listen_count;
    const char *to;
    struct tls_options tls;
    const char *tls_name;
    unsigned long preface_timeout_ms;
    unsigned long stall_timeout_ms;
    unsigned long max_connections;
    const char *log_level;
    char **rest; /* NULL at the end */
};

/* Ends the process with a line and exit code 2 when something is wrong. */
void flags_read(struct flags *flags, int count, char **arguments);

/* Ends the process with a line and exit code 2 if there is an error. */
void flags_must(struct error *error);

struct tls_context *flags_tls(const struct flags *flags);
struct runtime *flags_runtime(const struct flags *flags, struct log *log);
struct server *flags_server(const struct flags *flags, struct runtime *runtime);

/* Listens as the flags say, prints where, and waits for SIGTERM; then drains. */
void flags_serve(const struct flags *flags, struct server *server, struct tls_context *tls);

#endif
