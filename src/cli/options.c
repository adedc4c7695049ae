/* SPDX-License-Identifier: Apache-2.0 */
/* Flags from a table: see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/nearest.h"

#define HELP_COLUMN 30

void
options_print(const struct option *table)
{
    puts("options:");
    for (const struct option *option = table; option->name; option++) {
        char left[80];
        char letter[8] = "";
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
                 option->value ? option->value : "");
        printf("%-*s %s\n", HELP_COLUMN, left, option->help);
    }
    printf("%-*s %s\n", HELP_COLUMN, "  -h, --help", "show this help");
}

static void
print_help(const struct options *options)
{
    printf("usage: %s\n\n%s\n\n", options->usage, options->help);
    options_print(options->table);
}

static struct error *
usage_error(struct error *error, const char *name)
{
    struct error *told =
        error_new(CODE_INVALID_ARGUMENT, "%s (see %s --help)", error->message, name);
    error_free(error);
    return told;
}

static const struct option *
find_option(const struct options *options, const char *name, size_t size)
{
    for (const struct option *option = options->table; option->name; option++) {
        bool by_letter = size == 2 && name[0] == '-' && name[1] == option->letter;
        bool by_name = size > 2 && strlen(option->name) == size - 2 && name[0] == '-' &&
                       name[1] == '-' && memcmp(option->name, name + 2, size - 2) == 0;
        if (by_letter || by_name)
            return option;
    }
    return NULL;
}

static struct error *
read_number(const struct option *option, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, option->kind == OPTION_OCTAL ? 8 : 10);
    if (errno || end == value || *end || value[0] == '-')
        return error_new(CODE_INVALID_ARGUMENT, "--%s: \"%s\" is not %s number", option->name,
                         value, option->kind == OPTION_OCTAL ? "an octal" : "a");
    *(unsigned long *)option->place = number;
    return NULL;
}

static struct error *
set_option(const struct option *option, const char *value)
{
    switch (option->kind) {
    case OPTION_TEXT:
        *(const char **)option->place = value;
        return NULL;
    case OPTION_LIST: {
        struct text_list *list = option->place;
        list->items = memory_resize(list->items, (list->count + 1) * sizeof *list->items);
        list->items[list->count++] = value;
        return NULL;
    }
    case OPTION_NUMBER:
    case OPTION_OCTAL:
        return read_number(option, value);
    case OPTION_FLAG:
        *(bool *)option->place = true;
        return NULL;
    }
    return NULL;
}

static struct error *
unknown_option(const struct options *options, const char *argument, size_t size)
{
    char wanted[64] = "";
    struct nearest nearest = {.wanted = wanted};
    if (size > 2 && size < sizeof wanted)
        memcpy(wanted, argument + 2, size - 2);
    for (const struct option *option = options->table; option->name; option++)
        nearest_try(&nearest, option->name);
    if (nearest.name)
        return error_new(CODE_INVALID_ARGUMENT, "unknown option %.*s; did you mean --%s?",
                         (int)size, argument, nearest.name);
    return error_new(CODE_INVALID_ARGUMENT, "unknown option %.*s", (int)size, argument);
}

/* Reads the flag at arguments[*at] and its value, which may be the next argument. */
static struct error *
parse_one(const struct options *options, int count, char **arguments, int *at)
{
    const char *argument = arguments[(*at)++];
    size_t size = strcspn(argument, "=");
    const char *value = argument[size] ? argument + size + 1 : NULL;
    const struct option *option = find_option(options, argument, size);
    if (!option)
        return unknown_option(options, argument, size);
    if (option->kind == OPTION_FLAG && value)
        return error_new(CODE_INVALID_ARGUMENT, "--%s takes no value", option->name);
    if (option->kind != OPTION_FLAG && !value) {
        if (*at >= count)
            return error_new(CODE_INVALID_ARGUMENT, "--%s needs a value (%s)", option->name,
                             option->value);
        value = arguments[(*at)++];
    }
    return set_option(option, value);
}

int
options_skip(const struct option *table, int count, char **arguments)
{
    const struct options options = {.table = table};
    int at = 1;
    while (at < count) {
        size_t size = strcspn(arguments[at], "=");
        const struct option *option = find_option(&options, arguments[at], size);
        if (!option)
            break;
        at += option->kind == OPTION_FLAG || arguments[at][size] ? 1 : 2;
    }
    return at < count ? at : count;
}

struct error *
options_parse(const struct options *options, int count, char **arguments, int *rest, bool *helped)
{
    int at = 1, words = 0;
    bool only_words = false;
    *helped = false;
    while (at < count) {
        if (only_words || arguments[at][0] != '-' || !arguments[at][1]) {
            arguments[1 + words++] = arguments[at++];
        } else if (strcmp(arguments[at], "--") == 0) {
            only_words = true;
            at++;
        } else if (strcmp(arguments[at], "--help") == 0 || strcmp(arguments[at], "-h") == 0) {
            print_help(options);
            *helped = true;
            return NULL;
        } else {
            struct error *error = parse_one(options, count, arguments, &at);
            if (error)
                return usage_error(error, options->name);
        }
    }
    *rest = count - words;
    memmove(arguments + *rest, arguments + 1, (size_t)words * sizeof *arguments);
    return NULL;
}
