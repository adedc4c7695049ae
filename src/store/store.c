/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of all stores: selects the store by its URL, checks arguments and passes them on.
 * See store.h.
 */
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "store/store_ops.h"

/* A new store is one file, and one line here. */
static const struct store_ops *const stores[] = {
    &sqlite_store_ops,
    &memory_store_ops,
    &etcd_store_ops,
    &registry_store_ops,
};

/* ---- which store ---- */

static struct error *
unknown_store(const char *url)
{
    struct buffer forms AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < COUNT_OF(stores); i++)
        buffer_print(&forms, "%s%s", i ? " or " : "", stores[i]->form);
    return error_new(CODE_INVALID_ARGUMENT, "\"%s\" is no store: say %s", url, buffer_text(&forms));
}

/* `*place`: the text after the colon. NULL: there is no such store. */
static const struct store_ops *
find_store(const char *url, const char **place)
{
    for (size_t i = 0; i < COUNT_OF(stores); i++) {
        size_t size = strlen(stores[i]->scheme);
        if (!strncmp(url, stores[i]->scheme, size) && url[size] == ':') {
            *place = url + size + 1;
            return stores[i];
        }
    }
    return NULL;
}

struct error *
store_open(const char *url, const struct store_options *options, struct store **out)
{
    const char *place;
    const struct store_ops *ops = find_store(url, &place);
    *out = NULL;
    return ops ? ops->open(place, options, out) : unknown_store(url);
}

void
store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

void
store_stop(struct store *store)
{
    if (store && store->ops->stop)
        store->ops->stop(store);
}

/* ---- what is checked for all ---- */

static struct error *
check_key(const char *key)
{
    size_t size = strnlen(key, STORE_MAX_KEY + 1);
    if (!size)
        return error_new(CODE_INVALID_ARGUMENT, "the key of an entry is empty");
    if (size > STORE_MAX_KEY)
        return error_new(CODE_INVALID_ARGUMENT, "the key \"%.32s...\" has more than %d bytes", key,
                         STORE_MAX_KEY);
    if (!utf8_is_valid(key, size))
        return error_new(CODE_INVALID_ARGUMENT, "a key of %zu bytes is not UTF-8", size);
    return NULL;
}

static struct error *
check_change(const struct store_change *change)
{
    struct error *error = check_key(change->key);
    if (error)
        return error;
    if (change->value && change->value_size > STORE_MAX_VALUE)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the value for \"%s\" has %zu bytes; %u are the limit", change->key,
                         change->value_size, STORE_MAX_VALUE);
    return NULL;
}

/*
 * With two changes of one key, their order inside a write would matter, which etcd for one does not
 * support.
 */
static struct error *
check_distinct(const struct store_change *changes, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(changes[i].key, changes[j].key))
                return error_new(CODE_INVALID_ARGUMENT, "one write changes \"%s\" twice",
                                 changes[i].key);
    return NULL;
}

static struct error *
check_changes(const struct store_change *changes, size_t count)
{
    if (count < 1 || count > STORE_MAX_CHANGES)
        return error_new(CODE_INVALID_ARGUMENT, "a write has 1 to %d changes, not %zu",
                         STORE_MAX_CHANGES, count);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        struct error *error = check_change(&changes[i]);
        if (error)
            return error;
        bytes += changes[i].value ? changes[i].value_size : 0;
    }
    if (bytes > STORE_MAX_WRITE)
        return error_new(CODE_INVALID_ARGUMENT, "a write of %zu bytes; %u are the limit", bytes,
                         STORE_MAX_WRITE);
    return check_distinct(changes, count);
}

/* `what` may be empty: it is where a search begins. */
static struct error *
check_bound(const char *what, const char *text)
{
    if (strnlen(text, STORE_MAX_KEY + 1) > STORE_MAX_KEY)
        return error_new(CODE_INVALID_ARGUMENT, "the %s has more than %d bytes", what,
                         STORE_MAX_KEY);
    return NULL;
}

/* ---- passed on ---- */

struct error *
store_get(struct store *store, const char *key, struct arena *arena, struct store_entry *out)
{
    struct error *error = check_key(key);
    return error ? error : store->ops->get(store, key, arena, out);
}

struct error *
store_find(struct store *store, const char *key, struct arena *arena, struct store_entry *out,
           bool *found)
{
    struct error *error = store_get(store, key, arena, out);
    *found = !error;
    return error_forgive(error, CODE_NOT_FOUND);
}

struct error *
store_write(struct store *store, const struct store_change *changes, size_t count,
            uint64_t *revision)
{
    uint64_t ignored;
    struct error *error = check_changes(changes, count);
    return error ? error : store->ops->write(store, changes, count, revision ? revision : &ignored);
}

struct error *
store_list(struct store *store, const char *prefix, const char *after, size_t limit,
           struct arena *arena, struct store_list *out)
{
    *out = (struct store_list){0};
    struct error *error = check_bound("prefix", prefix);
    if (!error && after)
        error = check_bound("key to go on after", after);
    if (error)
        return error;
    /* There is nothing to skip before the first key with the prefix. */
    if (after && strcmp(after, prefix) < 0)
        after = NULL;
    return store->ops->list(store, prefix, after, limit, arena, out);
}

struct error *
store_revision(struct store *store, uint64_t *revision)
{
    return store->ops->revision(store, revision);
}

struct error *
store_watch_open(struct store *store, const char *prefix, uint64_t since, struct store_watch **out)
{
    uint64_t revision;
    *out = NULL;
    if (store->ops->is_unwatched)
        return error_new(CODE_UNIMPLEMENTED, "a store %s cannot be watched: list it again instead",
                         store->ops->form);
    struct error *error = check_bound("prefix", prefix);
    if (!error)
        error = store_revision(store, &revision);
    if (error)
        return error;
    if (since > revision)
        return error_new(CODE_OUT_OF_RANGE,
                         "revision %" PRIu64 " is not of this store, which is at %" PRIu64
                         ": list anew",
                         since, revision);
    return history_watch(&store->history, prefix, since, out);
}

/* ---- for skycap doctor ---- */

struct error *
store_check(struct store *store)
{
    return store->ops->check ? store->ops->check(store) : NULL;
}

struct error *
store_set_aside(const char *url, struct arena *arena, const char **moved_to)
{
    const char *place;
    const struct store_ops *ops = find_store(url, &place);
    *moved_to = NULL;
    if (!ops)
        return unknown_store(url);
    return ops->set_aside ? ops->set_aside(place, arena, moved_to) : NULL;
}
