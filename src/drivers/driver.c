/* SPDX-License-Identifier: Apache-2.0 */
/* What all drivers have in common: references and facts. See driver.h. */
#include "drivers/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"

void
driver_make_instance(char out[DRIVER_INSTANCE_SIZE])
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        memory_exhausted();
    snprintf(out, DRIVER_INSTANCE_SIZE, "%016" PRIx64, number);
}

/* ---- life ---- */

struct error *
driver_open(const struct driver_ops *ops, const struct driver_options *options, struct driver **out)
{
    struct error *error = ops->open(options, out);
    if (error)
        return error;
    /* It may have set its facts already; the caller reads them anyway. */
    pthread_mutex_lock(&(*out)->facts_lock);
    (*out)->changes = fact_changes_share(options->changes);
    pthread_mutex_unlock(&(*out)->facts_lock);
    return NULL;
}

void
driver_init(struct driver *driver, const struct driver_ops *ops,
            const struct driver_options *options)
{
    driver->ops = ops;
    driver->runtime = options->runtime;
    driver->connection = memory_string(options->connection);
    driver->max_calls = options->max_calls;
    atomic_init(&driver->references, 1);
    pthread_mutex_init(&driver->facts_lock, NULL);
    driver->facts = driver_facts_new();
    driver->facts->trouble = "it has not been reached yet";
}

void
driver_clear(struct driver *driver)
{
    driver_facts_release(driver->facts);
    fact_changes_release(driver->changes);
    pthread_mutex_destroy(&driver->facts_lock);
    free(driver->connection);
}

struct driver *
driver_share(struct driver *driver)
{
    atomic_fetch_add_explicit(&driver->references, 1, memory_order_relaxed);
    return driver;
}

static void
close_driver(void *argument)
{
    struct driver *driver = argument;
    driver->ops->close(driver);
}

void
driver_release(struct driver *driver)
{
    if (driver && atomic_fetch_sub_explicit(&driver->references, 1, memory_order_acq_rel) == 1)
        runtime_spawn(driver->runtime, close_driver, driver);
}

struct error *
driver_begin_call(struct driver *driver)
{
    if (atomic_fetch_add(&driver->calls, 1) < driver->max_calls)
        return NULL;
    driver_end_call(driver);
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "connection \"%s\": %" PRId64
                     " calls are in progress, as many as max-calls allows; try again later",
                     driver->connection, driver->max_calls);
}

void
driver_end_call(struct driver *driver)
{
    atomic_fetch_sub(&driver->calls, 1);
}

/* ---- facts ---- */

struct driver_facts *
driver_facts_new(void)
{
    struct driver_facts *facts = memory_zeroed(sizeof *facts);
    atomic_init(&facts->references, 1);
    arena_init(&facts->arena, NULL, 0, SIZE_MAX);
    return facts;
}

static const char *
copy_text(struct arena *arena, const char *text)
{
    return text ? arena_string(arena, text) : NULL;
}

struct driver_facts *
driver_facts_copy(const struct driver_facts *facts)
{
    const size_t start = offsetof(struct driver_facts, is_known); /* behind references and arena */
    struct driver_facts *copy = driver_facts_new();
    struct arena *arena = &copy->arena;
    memcpy((char *)copy + start, (const char *)facts + start, sizeof *copy - start);
    copy->trouble = copy_text(arena, facts->trouble);
    copy->plugin_name = copy_text(arena, facts->plugin_name);
    copy->plugin_version = copy_text(arena, facts->plugin_version);
    copy->node_id = copy_text(arena, facts->node_id);
    copy->topology = text_map_copy(&facts->topology, arena);
    return copy;
}

struct driver_facts *
driver_facts(struct driver *driver)
{
    pthread_mutex_lock(&driver->facts_lock);
    struct driver_facts *facts = driver->facts;
    atomic_fetch_add_explicit(&facts->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&driver->facts_lock);
    return facts;
}

void
driver_facts_release(struct driver_facts *facts)
{
    if (!facts || atomic_fetch_sub_explicit(&facts->references, 1, memory_order_acq_rel) != 1)
        return;
    arena_clear(&facts->arena);
    free(facts);
}

void
driver_facts_cleanup(struct driver_facts **facts)
{
    driver_facts_release(*facts);
}

void
driver_set_facts(struct driver *driver, struct driver_facts *taken)
{
    pthread_mutex_lock(&driver->facts_lock);
    struct driver_facts *old = driver->facts;
    driver->facts = taken;
    fact_changes_note(driver->changes);
    pthread_mutex_unlock(&driver->facts_lock);
    driver_facts_release(old);
}
