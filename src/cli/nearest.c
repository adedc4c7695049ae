/* SPDX-License-Identifier: Apache-2.0 */
/* The name that is nearest to a mistyped one: see nearest.h. */
#include "cli/nearest.h"

#include <stdbool.h>
#include <string.h>

#define MOST_LETTERS 40u /* no command or option is as long */

static unsigned
least(unsigned a, unsigned b, unsigned c)
{
    unsigned smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* The optimal string alignment distance, with the last three rows of its table. */
static unsigned
distance(const char *a, const char *b)
{
    unsigned rows[3][MOST_LETTERS + 1];
    size_t a_size = strlen(a), b_size = strlen(b);
    for (unsigned j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b_size; j++) {
            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swapped && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[a_size % 3][b_size];
}

void
nearest_try(struct nearest *nearest, const char *name)
{
    size_t size = strlen(nearest->wanted);
    if (size < 2 || size > MOST_LETTERS || strlen(name) > MOST_LETTERS)
        return;
    bool is_beginning = strncmp(nearest->wanted, name, size) == 0;
    unsigned found = is_beginning ? 1 : distance(nearest->wanted, name);
    if (found > (size + 2) / 3 || (nearest->name && found >= nearest->distance))
        return;
    nearest->name = name;
    nearest->distance = found;
}
