/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out, cheaply, what has changed since the last time: for the events of the page. */
#ifndef WEB_API_LOOK_H
#define WEB_API_LOOK_H

#include "web/api_internal.h"

enum api_topic {
    TOPIC_VOLUMES,
    TOPIC_SNAPSHOTS,
    TOPIC_NODES,
    TOPIC_CONNECTIONS,
    TOPIC_REPOSITORIES,
};
#define API_TOPICS 5

extern const char *const api_look_topics[API_TOPICS];

struct api_look {
    struct api *api;
    unsigned rounds;
    uint64_t changes; /* of volumes and snapshots of this process, and of all nodes */
    uint64_t calls;   /* that may have changed those of other drivers */
    struct buffer nodes;
    struct buffer connections;
};

void api_look_init(struct api_look *look, struct api *api);
void api_look_clear(struct api_look *look);

/* Called once a second. The first time nothing has changed. */
void api_look_again(struct api_look *look, bool is_changed[API_TOPICS]);

#endif
