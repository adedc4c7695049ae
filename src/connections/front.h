/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes everything behind `--connections`: the router, the connections and their stores.
 */
#ifndef CONNECTIONS_FRONT_H
#define CONNECTIONS_FRONT_H

#include "connections/router.h"

struct front;

/* All texts must outlive the front. */
struct front_options {
    const char *directory;      /* of the connections' files */
    const char *data_directory; /* made if missing */
    const char *driver_name;
    const char *node_id;
    bool is_node; /* the node side is served, not the controller's alone */
    const char
        *store_url; /* of what all processes of this driver share; NULL: below data_directory */
    struct tls_context *store_tls; /* of that, if it is on etcd; NULL: plaintext */
    bool tells_1_13;
    struct runtime *runtime;
    const struct log *log;
};

MUST_CHECK struct error *front_open(const struct front_options *options, struct front **out);

/* Its services, of the `sides` (csi/services.h). The front must outlive the server. */
void front_add(struct front *front, struct server *server, unsigned sides);

/* Before the last calls are waited for: long work ends, to be taken up again at the next start. */
void front_stop(struct front *front);

/* After the server is gone; the runtime closes after it. */
void front_close(struct front *front);

/* As Probe says it; see router_is_ready. The texts are in the arena. Any thread but the loop's. */
bool front_is_ready(const struct front *front, struct arena *arena, const char **degraded);

/*
 * What NodeGetInfo would answer, as bytes; the same answer has the same bytes. UNAVAILABLE: a
 * driver has not been reached yet, or the store cannot be. Any thread but the loop's.
 */
MUST_CHECK struct error *front_describe_node(const struct front *front, struct buffer *out);

/* Tells when it may have become another. */
struct fact_changes *front_changes(const struct front *front);

void front_print_metrics(struct front *front, struct buffer *out);

#endif
