/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for a registry on a unix socket, without TLS:
 *
 *     registry-load fill ADDRESS COUNT TARGET     registers so many controllers (c-0, c-1, ...), all at TARGET, 32 at a time; prints
 *                                                 the id of each that was answered
 *     registry-load nodes ADDRESS COUNT TARGET    announces so many nodes (n-0, n-1, ...) for ten minutes, or renews them, likewise
 *     registry-load pass ADDRESS COUNT CALLS      passes so many calls on, one after the other, to ten of the first COUNT controllers,
 *                                                 in an order that chance chooses; prints "p50_us p99_us"
 *     registry-load beside ADDRESS COUNT CALLS    the same, while two threads ask for all controllers, and one for page after page
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/csi.rpc.h"
#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "rpc/client/channel.h"
#include "rpc/loop/timers.h"

#define WRITERS 32
#define CALLED 10u /* each has a connection */
#define MAX_MESSAGE_BYTES (64u << 20)

struct load {
    struct runtime *runtime;
    struct channel *channel;
    const char *address;
    unsigned long count;
    const char *target;
    void (*add)(struct load *load, unsigned long number);
    atomic_ulong next;
    atomic_bool is_over;
    atomic_ulong asked;
};

static void
end_on_error(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "registry-load: %s: %s\n", error_code_name(error->code), error->message);
    exit(1);
}

static struct channel *
open_channel(const struct load *load)
{
    struct channel *channel;
    end_on_error(channel_open(load->runtime, load->address,
                              &(struct channel_options){.max_message_bytes = MAX_MESSAGE_BYTES},
                              &channel));
    return channel;
}

static struct error *
call(struct channel *channel, const struct method *method, const ProtobufCMessage *request,
     const struct metadata *metadata, struct arena *arena, void *reply)
{
    return channel_call(channel, method, request, &(struct call_options){.metadata = metadata},
                        arena, reply);
}

/* ---- fill ---- */

/* One write, past stdio: what that holds is written twice when another thread ends the process. */
static void
tell_answered(const char *id)
{
    char line[64];
    int size = snprintf(line, sizeof line, "%s\n", id);
    if (write(STDOUT_FILENO, line, (size_t)size) != size)
        _exit(1);
}

static void
register_one(struct load *load, unsigned long number)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Oim__V0__RegisterControllerRequest request = OIM__V0__REGISTER_CONTROLLER_REQUEST__INIT;
    Oim__V0__RegisterControllerReply *reply;
    request.controller_id = arena_print(&arena, "c-%lu", number);
    request.address = (char *)load->target;
    end_on_error(call(load->channel, OIM_V0_REGISTRY_REGISTER_CONTROLLER, &request.base, NULL,
                      &arena, &reply));
    tell_answered(request.controller_id);
}

static void
announce_one(struct load *load, unsigned long number)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    Skycap__V1__AnnounceReply *reply;
    Google__Protobuf__Duration life = GOOGLE__PROTOBUF__DURATION__INIT;
    Skycap__V1__AnnounceRequest__AttributesEntry zone =
        SKYCAP__V1__ANNOUNCE_REQUEST__ATTRIBUTES_ENTRY__INIT;
    life.seconds = 600;
    zone.key = (char *)"zone";
    zone.value = (char *)"somewhere";
    request.node_id = arena_print(&arena, "n-%lu", number);
    request.address = (char *)load->target;
    request.time_to_live = &life;
    request.n_attributes = 1;
    request.attributes = (Skycap__V1__AnnounceRequest__AttributesEntry *[]){&zone};
    end_on_error(
        call(load->channel, SKYCAP_V1_REGISTRY_ANNOUNCE, &request.base, NULL, &arena, &reply));
    tell_answered(request.node_id);
}

static void *
register_many(void *argument)
{
    struct load *load = argument;
    unsigned long number;
    while ((number = atomic_fetch_add(&load->next, 1)) < load->count)
        load->add(load, number);
    return NULL;
}

static void
fill(struct load *load, void (*add)(struct load *load, unsigned long number))
{
    load->add = add;
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, register_many, load);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- pass ---- */

static int
compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint64_t
pass_one(struct load *load, unsigned long number)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct metadata metadata = {0};
    Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *reply;
    const char *id = arena_print(&arena, "c-%lu", number);
    end_on_error(metadata_add(&metadata, &arena, "controllerid", id, strlen(id)));
    uint64_t started = timers_now();
    end_on_error(
        call(load->channel, CSI_V1_IDENTITY_PROBE, &request.base, &metadata, &arena, &reply));
    return timers_now() - started;
}

static void
pass(struct load *load, unsigned long calls)
{
    uint64_t *times = calloc(calls + 1, sizeof *times);
    unsigned seed = 7;
    for (unsigned long i = 0; times && i < calls; i++)
        times[i] = pass_one(load, (unsigned long)rand_r(&seed) % CALLED * (load->count / CALLED));
    qsort(times, calls, sizeof *times, compare);
    printf("%.1f %.1f\n", (double)times[calls / 2] / 1e3, (double)times[calls * 99 / 100] / 1e3);
    free(times);
}

/* ---- beside ---- */

static void *
ask_for_all(void *argument)
{
    struct load *load = argument;
    struct channel *channel = open_channel(load);
    while (!atomic_load(&load->is_over)) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        Oim__V0__GetControllerRequest request = OIM__V0__GET_CONTROLLER_REQUEST__INIT;
        Oim__V0__GetControllerReply *reply;
        end_on_error(
            call(channel, OIM_V0_REGISTRY_GET_CONTROLLERS, &request.base, NULL, &arena, &reply));
        if (reply->n_entries < load->count)
            end_on_error(error_new(CODE_DATA_LOSS, "only %zu controllers", reply->n_entries));
        atomic_fetch_add(&load->asked, 1);
    }
    channel_close(channel);
    return NULL;
}

static void *
ask_for_pages(void *argument)
{
    struct load *load = argument;
    struct channel *channel = open_channel(load);
    char token[512] = "";
    while (!atomic_load(&load->is_over)) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
        Skycap__V1__ListEntriesReply *reply;
        request.starting_token = token;
        end_on_error(
            call(channel, SKYCAP_V1_REGISTRY_LIST_ENTRIES, &request.base, NULL, &arena, &reply));
        snprintf(token, sizeof token, "%s", reply->next_token);
    }
    channel_close(channel);
    return NULL;
}

static void
pass_beside(struct load *load, unsigned long calls)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, ask_for_all, load);
    pthread_create(&threads[1], NULL, ask_for_all, load);
    pthread_create(&threads[2], NULL, ask_for_pages, load);
    pass(load, calls);
    atomic_store(&load->is_over, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "all controllers were asked for %lu times\n", atomic_load(&load->asked));
}

int
main(int count, char **arguments)
{
    if (count != 5) {
        fprintf(stderr, "usage: %s fill|nodes|pass|beside ADDRESS COUNT TARGET|CALLS\n",
                arguments[0]);
        return 2;
    }
    struct log log = {.level = LOG_ERROR, .fd = 2};
    struct load load = {
        .address = arguments[2], .count = strtoul(arguments[3], NULL, 10), .target = arguments[4]};
    unsigned long calls = strtoul(arguments[4], NULL, 10);
    end_on_error(runtime_open(&(struct runtime_options){.log = &log}, &load.runtime));
    load.channel = open_channel(&load);
    if (!strcmp(arguments[1], "fill"))
        fill(&load, register_one);
    else if (!strcmp(arguments[1], "nodes"))
        fill(&load, announce_one);
    else if (!strcmp(arguments[1], "pass"))
        pass(&load, calls);
    else
        pass_beside(&load, calls);
    channel_close(load.channel);
    runtime_close(load.runtime);
    return 0;
}
