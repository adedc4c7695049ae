/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags, declared once as a table: parsing, checking and --help all come from it.
 *
 *     --name VALUE, --name=VALUE, -x VALUE, anywhere among the arguments; `--` ends the flags.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text_map.h"

enum option_kind {
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* struct text_list: may be given several times */
    OPTION_NUMBER, /* unsigned long, decimal */
    OPTION_OCTAL,  /* unsigned long */
    OPTION_FLAG,   /* bool, no value */
};

struct option {
    const char *name;  /* without the dashes */
    char letter;       /* 0: none */
    const char *value; /* name of its value in --help; NULL: it has none */
    enum option_kind kind;
    void *place;
    const char *help;
};

struct options {
    const char *name;           /* "skycap volume create" */
    const char *usage;          /* "skycap volume create NAME [options]" */
    const char *help;           /* a sentence or two */
    const struct option *table; /* ends with {0} */
};

/*
 * Sets the options' variables, and moves the arguments that are no flags to the end: they begin at
 * the index `*rest`. With --help, prints it and sets *helped.
 */
MUST_CHECK struct error *options_parse(const struct options *options, int count, char **arguments,
                                       int *rest, bool *helped);

/* The index of the first argument that is neither one of these flags nor the value of one. */
int options_skip(const struct option *table, int count, char **arguments);

/* The list of flags in --help. */
void options_print(const struct option *table);

#endif
