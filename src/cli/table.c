/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned columns: see table.h. */
#include "cli/table.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/memory.h"
#include "base/utf8.h"

#define GAP 2
#define FACT_COLUMN 12

void
table_init(struct table *table, const char *const *headings, size_t columns)
{
    *table = (struct table){.columns = columns};
    for (size_t i = 0; i < columns; i++)
        table_add(table, headings[i]);
}

void
table_add(struct table *table, const char *cell)
{
    table->cells = memory_resize(table->cells, (table->count + 1) * sizeof *table->cells);
    table->cells[table->count++] = cell[0] ? cell : "-";
}

void
table_clear(struct table *table)
{
    free(table->cells);
    *table = (struct table){0};
}

/* The columns of the first character, -1 for a control character; `*size` becomes its bytes. */
static int
width_of_character(const char *text, size_t *size)
{
    uint32_t character;
    *size = utf8_decode(text, strlen(text), &character);
    int width = *size ? wcwidth((wchar_t)character) : -1;
    if (!*size)
        *size = 1;
    return width;
}

static size_t
width_of(const char *text)
{
    size_t width = 0, size;
    for (; *text; text += size) {
        int columns = width_of_character(text, &size);
        width += columns < 0 ? 1 : (size_t)columns;
    }
    return width;
}

static void
print_text(const char *text)
{
    size_t size;
    for (; *text; text += size) {
        if (width_of_character(text, &size) < 0)
            putchar('?');
        else
            fwrite(text, 1, size, stdout);
    }
}

/* wcwidth depends on the locale; names are always UTF-8. */
static locale_t
use_utf8(locale_t *utf8)
{
    *utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return *utf8 ? uselocale(*utf8) : (locale_t)0;
}

static void
use_again(locale_t before, locale_t utf8)
{
    if (!utf8)
        return;
    uselocale(before);
    freelocale(utf8);
}

static void
print_row(const struct table *table, const char *const *row, const size_t *widths)
{
    for (size_t i = 0; i < table->columns; i++) {
        print_text(row[i]);
        if (i + 1 < table->columns)
            printf("%*s", (int)(widths[i] - width_of(row[i])) + GAP, "");
    }
    putchar('\n');
}

void
table_print(const struct table *table)
{
    locale_t utf8, before = use_utf8(&utf8);
    size_t *widths AUTO(memory_cleanup) = memory_zeroed(table->columns * sizeof *widths);
    for (size_t i = 0; i < table->count; i++) {
        size_t width = width_of(table->cells[i]);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
    for (size_t i = 0; i < table->count; i += table->columns)
        print_row(table, table->cells + i, widths);
    use_again(before, utf8);
}

void
table_print_fact(const char *name, const char *value)
{
    if (!value[0])
        return;
    locale_t utf8, before = use_utf8(&utf8);
    printf("%-*s", FACT_COLUMN, name);
    print_text(value);
    putchar('\n');
    use_again(before, utf8);
}
