/* SPDX-License-Identifier: Apache-2.0 */
/* Registering with the kubelet: see serve_registration.h. */
#include "cli/serve_registration.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "csi/registration.h"
#include "rpc/loop/timers.h"

#define PAUSE_MS 10000u          /* minimum between two registrations */
#define LONGEST_PAUSE_MS 300000u /* while the kubelet rejects the same answer */
#define DRAIN_MS 1000u           /* for calls of the kubelet in progress */

struct serve_registration {
    struct serve_registration_options options;
    struct address csi;
    char socket[300];
    struct registration service;
    struct fact_changes *changes;
    pthread_t thread;
    bool has_thread;

    /* Set on the loop thread, since the socket was created. */
    atomic_bool was_asked; /* since the last check */
    atomic_bool is_accepted;
    atomic_bool is_refused;

    /* Only for the thread. */
    struct server *server; /* NULL: no socket */
    struct buffer told;    /* the answer of NodeGetInfo when the socket was created */
    bool is_told;          /* the kubelet has had no other answer since */
    uint64_t made_ms;
    uint32_t pause_ms; /* before the next attempt, if the kubelet rejects this one */
};

static uint64_t
now_ms(void)
{
    return timers_now() / 1000000;
}

/* Loop thread. */
static void
note(void *context, enum registration_event event)
{
    struct serve_registration *registration = context;
    atomic_store(&registration->was_asked, true);
    if (event != REGISTRATION_ASKED) {
        atomic_store(&registration->is_accepted, event == REGISTRATION_ACCEPTED);
        atomic_store(&registration->is_refused, event == REGISTRATION_REFUSED);
    }
    fact_changes_note(registration->changes);
}

static struct error *
describe(const struct serve_registration *registration, struct buffer *out)
{
    struct router *router = registration->options.router;
    return router ? router_describe_node(router, out) : NULL;
}

/* ---- the socket ---- */

static void
remove_socket(struct serve_registration *registration)
{
    if (!registration->server)
        return;
    server_drain(registration->server, DRAIN_MS);
    server_free(registration->server);
    registration->server = NULL;
}

static struct error *
make_socket(struct serve_registration *registration, const struct buffer *answer)
{
    atomic_store(&registration->was_asked, false);
    atomic_store(&registration->is_accepted, false);
    atomic_store(&registration->is_refused, false);
    buffer_clear(&registration->told);
    buffer_append(&registration->told, answer->bytes, answer->size);
    registration->is_told = true;
    registration->made_ms = now_ms();
    registration->server = server_new(registration->options.runtime, &(struct server_options){0});
    registration_add(registration->server, &registration->service);
    struct error *error =
        server_listen(registration->server, registration->socket, &(struct listen_options){0});
    if (error)
        remove_socket(registration);
    return error;
}

static void
make_again(struct serve_registration *registration, const struct buffer *answer)
{
    const struct log *log = registration->options.log;
    bool is_first = !registration->server;
    remove_socket(registration);
    struct error *error AUTO(error_cleanup) = make_socket(registration, answer);
    if (error)
        log_error(log, "cannot register with the kubelet; trying again",
                  LOG_TEXT("error", error->message));
    else if (is_first)
        log_info(log, "registering with the kubelet");
    else
        log_info(log, "registering with the kubelet again");
}

/* ---- the thread ---- */

static bool
is_same(const struct serve_registration *registration, const struct buffer *answer)
{
    const struct buffer *told = &registration->told;
    return registration->is_told && told->size == answer->size &&
           (told->size == 0 || memcmp(told->bytes, answer->bytes, told->size) == 0);
}

static uint32_t
next_pause(uint32_t pause_ms)
{
    return pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
}

/* Returns the milliseconds until the next check; 0: at the next change. */
static uint32_t
look(struct serve_registration *registration)
{
    struct buffer answer AUTO(buffer_clear) = {0};
    bool was_asked = atomic_exchange(&registration->was_asked, false);
    struct error *error AUTO(error_cleanup) = describe(registration, &answer);
    bool same = !error && is_same(registration, &answer);
    if (was_asked && !same)
        registration->is_told = false; /* it may have had another answer */
    if (error)
        return PAUSE_MS; /* nothing reports when the store is back */
    if (!same || atomic_load(&registration->is_accepted))
        registration->pause_ms = PAUSE_MS;
    if (registration->server && same && !atomic_load(&registration->is_refused))
        return 0;
    uint64_t now = now_ms(), due = registration->made_ms + registration->pause_ms;
    if (registration->made_ms && now < due)
        return (uint32_t)(due - now);
    registration->pause_ms = same ? next_pause(registration->pause_ms) : PAUSE_MS;
    make_again(registration, &answer);
    return registration->server ? 0 : registration->pause_ms;
}

static void *
thread_main(void *argument)
{
    struct serve_registration *registration = argument;
    uint64_t seen = 0;
    while (fact_changes_wait(registration->changes, &seen, look(registration)))
        ;
    return NULL;
}

/* ---- opening ---- */

/* An unusable directory fails the start, even if the socket is created later. */
static struct error *
make_first(struct serve_registration *registration)
{
    const struct serve_registration_options *options = &registration->options;
    struct buffer answer AUTO(buffer_clear) = {0};
    struct error *error AUTO(error_cleanup) = describe(registration, &answer);
    if (!error)
        return make_socket(registration, &answer);
    if (access(options->directory, W_OK | X_OK) != 0)
        return error_from_errno(errno, "make a socket in %s", options->directory);
    log_warn(options->log, "registration with the kubelet waits", LOG_TEXT("why", error->message));
    return NULL;
}

static struct error *
open_parts(struct serve_registration *registration)
{
    const struct serve_registration_options *options = &registration->options;
    struct error *error = address_parse(options->endpoint, &registration->csi);
    if (error)
        return error;
    registration->service = (struct registration){
        .driver_name = options->driver_name,
        .socket_path = registration->csi.path,
        .log = options->log,
        .note = note,
        .context = registration,
    };
    snprintf(registration->socket, sizeof registration->socket, "unix://%s/%s-reg.sock",
             options->directory, options->driver_name);
    error = make_first(registration);
    if (error)
        return error;
    int failed = pthread_create(&registration->thread, NULL, thread_main, registration);
    registration->has_thread = failed == 0;
    return failed ? error_from_errno(failed, "start the thread that registers") : NULL;
}

struct error *
serve_registration_open(const struct serve_registration_options *options,
                        struct serve_registration **out)
{
    struct serve_registration *registration = memory_zeroed(sizeof *registration);
    registration->options = *options;
    registration->pause_ms = PAUSE_MS;
    registration->changes =
        options->router ? fact_changes_share(router_changes(options->router)) : fact_changes_new();
    struct error *error = open_parts(registration);
    if (error) {
        serve_registration_close(registration);
        return error;
    }
    *out = registration;
    return NULL;
}

void
serve_registration_close(struct serve_registration *registration)
{
    if (!registration)
        return;
    fact_changes_stop(registration->changes);
    if (registration->has_thread)
        pthread_join(registration->thread, NULL);
    server_free(registration->server);
    buffer_clear(&registration->told);
    fact_changes_release(registration->changes);
    free(registration);
}
