/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that stand in line, for people. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>

struct table {
    size_t columns;
    const char **cells; /* row by row, the headings first */
    size_t count;
};

/* Cells, and the headings, must live until the table is printed. */
void table_init(struct table *table, const char *const *headings, size_t columns);

/* One cell after the other, row by row. "" shows as "-"; control characters show as "?". */
void table_add(struct table *table, const char *cell);

/* On stdout. */
void table_print(const struct table *table);

/* For `struct table table AUTO(table_clear)`. */
void table_clear(struct table *table);

/* "name        value": one line of what is known about one thing. Nothing for an empty value. */
void table_print_fact(const char *name, const char *value);

#endif
