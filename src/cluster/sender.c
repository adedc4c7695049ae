/* SPDX-License-Identifier: Apache-2.0 */
/* What this node sends: see sender.h. */
#include "cluster/sender.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rate.h"

struct sender {
    struct rate rate;
    atomic_bool is_stopped;
    atomic_uint_fast64_t sent;
    atomic_uint_fast64_t saved;
    atomic_uint_fast64_t running;
    atomic_uint_fast64_t succeeded;
    atomic_uint_fast64_t failed;
};

struct sender *
sender_new(uint64_t bytes_per_s)
{
    struct sender *sender = memory_zeroed(sizeof *sender);
    rate_init(&sender->rate, bytes_per_s);
    return sender;
}

void
sender_free(struct sender *sender)
{
    if (!sender)
        return;
    rate_clear(&sender->rate);
    free(sender);
}

void
sender_stop(struct sender *sender)
{
    atomic_store(&sender->is_stopped, true);
}

bool
sender_is_stopped(const struct sender *sender)
{
    return atomic_load(&sender->is_stopped);
}

uint64_t
sender_take(struct sender *sender, uint64_t bytes)
{
    return rate_take(&sender->rate, bytes);
}

void
sender_begin(struct sender *sender)
{
    atomic_fetch_add(&sender->running, 1);
}

void
sender_end(struct sender *sender, bool has_failed)
{
    atomic_fetch_sub(&sender->running, 1);
    atomic_fetch_add(has_failed ? &sender->failed : &sender->succeeded, 1);
}

void
sender_count(struct sender *sender, uint64_t sent, uint64_t plain)
{
    atomic_fetch_add(&sender->sent, sent);
    atomic_fetch_add(&sender->saved, plain - sent);
}

void
sender_print_metrics(const struct sender *sender, struct buffer *out)
{
    buffer_print(
        out,
        "# HELP skycap_transfer_sent_bytes_total Bytes of volumes and exports sent to other "
        "nodes.\n# TYPE skycap_transfer_sent_bytes_total counter\n"
        "skycap_transfer_sent_bytes_total %" PRIu64 "\n"
        "# HELP skycap_transfer_saved_bytes_total Bytes that compression has saved.\n"
        "# TYPE skycap_transfer_saved_bytes_total counter\n"
        "skycap_transfer_saved_bytes_total %" PRIu64 "\n",
        (uint64_t)atomic_load(&sender->sent), (uint64_t)atomic_load(&sender->saved));
    buffer_print(out,
                 "# HELP skycap_transfers_running Streams that are being sent to other nodes.\n"
                 "# TYPE skycap_transfers_running gauge\nskycap_transfers_running %" PRIu64 "\n"
                 "# HELP skycap_transfers_total Streams that have ended. One that was interrupted "
                 "has failed, and another continues it.\n# TYPE skycap_transfers_total counter\n"
                 "skycap_transfers_total{state=\"succeeded\"} %" PRIu64 "\n"
                 "skycap_transfers_total{state=\"failed\"} %" PRIu64 "\n",
                 (uint64_t)atomic_load(&sender->running), (uint64_t)atomic_load(&sender->succeeded),
                 (uint64_t)atomic_load(&sender->failed));
}
