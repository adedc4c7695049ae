/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the small files of a tree before the kernel sends them. A snapshot that was just taken has
 * nothing in the page cache, also if the volume has, and the kernel waits for the disk at every
 * file. The thread only asks for the pages and does not wait. It is a help: what it cannot read is
 * left out, and reported by who sends it.
 */
#ifndef STREAM_STREAM_PREFETCH_H
#define STREAM_STREAM_PREFETCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct stream_prefetch {
    int root;
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* for the following */
    pthread_cond_t changed;
    uint64_t sent_bytes;
    bool is_over;
};

/* `root` must stay open. Without a thread nothing is read in advance. */
void stream_prefetch_begin(struct stream_prefetch *prefetch, int root);

/* So much has been sent: the thread keeps a limited number of bytes ahead of it. */
void stream_prefetch_advance(struct stream_prefetch *prefetch, uint64_t sent_bytes);

void stream_prefetch_end(struct stream_prefetch *prefetch);

#endif
