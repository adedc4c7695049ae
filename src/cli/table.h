/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns, for people. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>

struct table {
    size_t columns;
    const char **cells; /* row by row; headings first */
    size_t count;
};

/* Headings and cells must live until the table is printed. */
void table_init(struct table *table, const char *const *headings, size_t columns);

/* Adds the next cell, row by row. "" is printed as "-", a control character as "?". */
void table_add(struct table *table, const char *cell);

void table_print(const struct table *table);

/* For `struct table table AUTO(table_clear)`. */
void table_clear(struct table *table);

/* Prints "name        value"; nothing if the value is empty. */
void table_print_fact(const char *name, const char *value);

#endif
