/* SPDX-License-Identifier: Apache-2.0 */
/* What this node sends to other nodes, in all transfers: its limit, its metrics. Any thread. */
#ifndef CLUSTER_SENDER_H
#define CLUSTER_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct sender;

/* `bytes_per_s` 0: no limit. */
struct sender *sender_new(uint64_t bytes_per_s);
/* NULL is fine. */
void sender_free(struct sender *sender);

/* Because this node stops: transfers are to end. They go on when it is back. */
void sender_stop(struct sender *sender);
bool sender_is_stopped(const struct sender *sender);

/* How many nanoseconds to wait before so many bytes are sent: see base/rate.h. */
uint64_t sender_take(struct sender *sender, uint64_t bytes);

/* A transfer begins, or one has ended. */
void sender_begin(struct sender *sender);
void sender_end(struct sender *sender, bool has_failed);

/* Bytes were sent that were `plain` before they were compressed. */
void sender_count(struct sender *sender, uint64_t sent, uint64_t plain);

/* In Prometheus' text format. */
void sender_print_metrics(const struct sender *sender, struct buffer *out);

#endif
