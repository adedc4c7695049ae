/* SPDX-License-Identifier: Apache-2.0 */
/* Selects a connection: see choice.h. */
#include "connections/request/choice.h"

#include <stdlib.h>
#include <string.h>

#include "connections/request/map_field.h"

static struct error *
no_default(const struct connection_set *set, struct arena *arena)
{
    const struct connection_slot *wrong = connection_set_wrong(set);
    if (wrong)
        return error_new(CODE_UNAVAILABLE,
                         "the parameter \"" CHOICE_NAME "\" is missing, and whether \"%s\" is the "
                         "default connection is not known: its file is wrong",
                         wrong->name);
    return error_new(CODE_INVALID_ARGUMENT,
                     "the parameter \"" CHOICE_NAME "\" is missing, and no connection is the "
                     "default one; there are: %s",
                     connection_set_names(set, arena));
}

struct error *
choice_of_name(const struct connection_set *set, const char *name, struct arena *arena,
               struct connection **out)
{
    if (!name) {
        *out = connection_set_default(set);
        return *out ? NULL : no_default(set, arena);
    }
    *out = connection_set_find(set, name);
    if (*out)
        return NULL;
    if (!spec_is_alias(name))
        return spec_check_name(name);
    return error_new(CODE_INVALID_ARGUMENT, "there is no connection \"%s\"; there are: %s", name,
                     connection_set_names(set, arena));
}

/* ---- selectors ---- */

/* Splits a term, "key=value" or "key!=value", in place. False: it is neither. */
static bool
split_term(char *term, const char **key, const char **value, bool *is_negated)
{
    char *equals = strchr(term, '=');
    if (!equals || equals == term)
        return false;
    *is_negated = equals[-1] == '!';
    equals[*is_negated ? -1 : 0] = '\0';
    *key = term;
    *value = equals + 1;
    return term[0] != '\0';
}

/* Do all terms match? */
static struct error *
labels_fit(const struct text_map *labels, const char *selector, struct arena *arena, bool *fit)
{
    char *rest = arena_string(arena, selector);
    *fit = true;
    for (char *term; (term = strsep(&rest, ","));) {
        const char *key, *wanted;
        bool is_negated;
        if (!split_term(term, &key, &wanted, &is_negated))
            return error_new(CODE_INVALID_ARGUMENT,
                             "\"" CHOICE_SELECTOR "\": \"%s\" is not like media=ssd,tier!=cold",
                             selector);
        const char *is = text_map_find(labels, key);
        bool equal = is && strcmp(is, wanted) == 0;
        *fit &= equal != is_negated;
    }
    return NULL;
}

static int
compare(const void *a, const void *b)
{
    const struct connection_spec *first = (*(struct connection *const *)a)->spec;
    const struct connection_spec *second = (*(struct connection *const *)b)->spec;
    if (first->priority != second->priority)
        return first->priority > second->priority ? -1 : 1;
    return strcmp(first->name, second->name);
}

static struct error *
select_by_labels(const struct connection_set *set, const char *selector, struct arena *arena,
                 struct choice *out)
{
    out->is_selected = true;
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        bool fits = false;
        struct error *error =
            connection ? labels_fit(&connection->spec->labels, selector, arena, &fits) : NULL;
        if (error)
            return error;
        if (fits)
            out->items[out->count++] = connection;
    }
    qsort(out->items, out->count, sizeof *out->items, compare);
    if (out->count)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "no connection has the labels \"%s\"; there are: %s",
                     selector, connection_set_names(set, arena));
}

struct error *
choice_make(const struct connection_set *set, const struct text_map *parameters,
            struct connection *source, struct arena *arena, struct choice *out)
{
    const char *name = text_map_find(parameters, CHOICE_NAME);
    const char *selector = text_map_find(parameters, CHOICE_SELECTOR);
    *out = (struct choice){.items = arena_zeroed(arena, (set->count + 1) * sizeof *out->items)};
    if (name && selector)
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"" CHOICE_NAME "\" and \"" CHOICE_SELECTOR "\" exclude each other");
    if (selector)
        return select_by_labels(set, selector, arena, out);
    out->count = 1;
    out->items[0] = source;
    return name || !source ? choice_of_name(set, name, arena, &out->items[0]) : NULL;
}

/* ---- parameters ---- */

void
choice_merge_parameters(const struct connection *connection, ProtobufCMessage *request,
                        struct arena *arena)
{
    struct map_field field;
    struct text_map merged = {0};
    if (!map_field_find(request, "parameters", &field))
        return;
    const struct text_map *defaults = &connection->spec->parameters;
    struct text_map asked = map_field_read(&field, arena);
    for (size_t i = 0; i < defaults->count; i++)
        text_map_set(&merged, arena, defaults->pairs[i].key, defaults->pairs[i].value);
    for (size_t i = 0; i < asked.count; i++)
        if (strcmp(asked.pairs[i].key, CHOICE_NAME) != 0 &&
            strcmp(asked.pairs[i].key, CHOICE_SELECTOR) != 0)
            text_map_set(&merged, arena, asked.pairs[i].key, asked.pairs[i].value);
    map_field_write(&field, &merged, arena);
}
