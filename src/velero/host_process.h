/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin's process, started as Velero does: magic cookie in the environment, handshake line on
 * standard output, gRPC on the socket that the line names, log lines on standard error.
 *
 * A thread starts the process, reads its outputs for as long as it runs, and reaps it. The process
 * leads its own process group and dies with us. Functions may block; not for the loop's thread.
 */
#ifndef VELERO_HOST_PROCESS_H
#define VELERO_HOST_PROCESS_H

#include "base/error.h"
#include "base/log.h"
#include "rpc/client/channel.h"
#include "velero/host_identity.h"

/* All of it must outlive the process. */
struct host_process_options {
    const char *path; /* the program */
    const char *name; /* for errors and log lines */
    /*
     * Its directory for sockets and temporary files. It is created at the start, readable by its
     * owner only, and removed with everything in it at the end.
     */
    const char *directory;
    const struct host_identity *identity; /* for mutual TLS; NULL: plaintext, as Velero */
    uint32_t start_timeout_ms;            /* until the handshake */
    struct runtime *runtime;
    const struct log *log;
};

struct host_process;

/* Returns before the process has started: host_process_wait. */
MUST_CHECK struct error *host_process_start(const struct host_process_options *options,
                                            struct host_process **out);

/*
 * Waits for the handshake, and opens the channel. The error says what is wrong with the plugin; its
 * process has ended then.
 */
MUST_CHECK struct error *host_process_wait(struct host_process *process);

/* After a successful host_process_wait, until host_process_close. */
struct channel *host_process_channel(struct host_process *process);

/* It must be closed and started again: it has ended, or does not answer as it should. */
bool host_process_is_lost(struct host_process *process);

/*
 * What a call of a method gave: adds how the process ended, if that is why it failed. After a
 * connection that broke or a deadline that passed, the process counts as lost. NULL stays NULL.
 */
MUST_CHECK struct error *host_process_judge(struct host_process *process, struct error *error);

/*
 * Asks it to end, kills it after 2 s, or at once if it is lost, and removes its directory. NULL is
 * ignored.
 */
void host_process_close(struct host_process *process);

#endif
