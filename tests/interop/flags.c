/* SPDX-License-Identifier: Apache-2.0 */
/* What the interop programs share: see flags.h. */
#include "flags.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define GRACE_MS 10000

void
flags_must(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(2);
}

static void
read_flag(struct flags *flags, const char *name, const char *value)
{
    if (strcmp(name, "--listen") == 0 && flags->listen_count < MAX_LISTEN)
        flags->listen[flags->listen_count++] = value;
    else if (strcmp(name, "--to") == 0)
        flags->to = value;
    else if (strcmp(name, "--tls-ca") == 0)
        flags->tls.ca_file = value;
    else if (strcmp(name, "--tls-cert") == 0)
        flags->tls.certificate_file = value;
    else if (strcmp(name, "--tls-key") == 0)
        flags->tls.key_file = value;
    else if (strcmp(name, "--tls-name") == 0)
        flags->tls_name = value;
    else if (strcmp(name, "--preface-timeout-ms") == 0)
        flags->preface_timeout_ms = strtoul(value, NULL, 10);
    else if (strcmp(name, "--stall-timeout-ms") == 0)
        flags->stall_timeout_ms = strtoul(value, NULL, 10);
    else if (strcmp(name, "--max-connections") == 0)
        flags->max_connections = strtoul(value, NULL, 10);
    else if (strcmp(name, "--log-level") == 0)
        flags->log_level = value;
    else
        flags_must(error_new(CODE_INVALID_ARGUMENT, "unknown flag %s", name));
}

void
flags_read(struct flags *flags, int count, char **arguments)
{
    *flags = (struct flags){.log_level = "warn"};
    int at = 1;
    while (at < count && strncmp(arguments[at], "--", 2) == 0) {
        if (at + 1 >= count)
            flags_must(error_new(CODE_INVALID_ARGUMENT, "%s needs a value", arguments[at]));
        read_flag(flags, arguments[at], arguments[at + 1]);
        at += 2;
    }
    flags->rest = arguments + at;
}

struct tls_context *
flags_tls(const struct flags *flags)
{
    struct tls_context *tls = NULL;
    if (flags->tls.ca_file)
        flags_must(tls_context_open(&flags->tls, &tls));
    return tls;
}

struct runtime *
flags_runtime(const struct flags *flags, struct log *log)
{
    static struct log_batch batch; /* as long as the program */
    struct runtime *runtime;
    *log = (struct log){.fd = STDERR_FILENO};
    log_collect(log, &batch);
    flags_must(log_parse_level(flags->log_level, &log->level));
    memory_tune();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    flags_must(runtime_open(&(struct runtime_options){.log = log}, &runtime));
    return runtime;
}

struct server *
flags_server(const struct flags *flags, struct runtime *runtime)
{
    return server_new(runtime, &(struct server_options){
                                   .preface_timeout_ms = (uint32_t)flags->preface_timeout_ms,
                                   .stall_timeout_ms = (uint32_t)flags->stall_timeout_ms,
                                   .max_connections = (uint32_t)flags->max_connections,
                               });
}

void
flags_serve(const struct flags *flags, struct server *server, struct tls_context *tls)
{
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    for (size_t i = 0; i < flags->listen_count; i++)
        flags_must(server_listen(server, flags->listen[i], &(struct listen_options){.tls = tls}));
    for (size_t i = 0; server_address(server, i); i++) {
        char text[300];
        address_print(server_address(server, i), text, sizeof text);
        printf("listening on %s\n", text);
    }
    fflush(stdout);
    sigwait(&signals, &signal);
    server_drain(server, GRACE_MS);
}
