/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them: see size_text.h. */
#include "base/size_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t factor;
    int power;
} units[] = {
    {"", 1, 0},     {"Ki", 1024, 1}, {"Mi", 1024, 2}, {"Gi", 1024, 3}, {"Ti", 1024, 4},
    {"k", 1000, 1}, {"K", 1000, 1},  {"M", 1000, 2},  {"G", 1000, 3},  {"T", 1000, 4},
};

static bool
multiply(int64_t number, size_t unit, int64_t *bytes)
{
    for (int i = 0; i < units[unit].power; i++)
        if (__builtin_mul_overflow(number, units[unit].factor, &number))
            return false;
    *bytes = number;
    return true;
}

struct error *
size_text_parse(const char *text, int64_t *bytes)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && !errno)
        for (size_t i = 0; i < COUNT_OF(units); i++)
            if (strcmp(end, units[i].name) == 0 && multiply(number, i, bytes))
                return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" is no size: use a number of bytes, or like 10Gi", text);
}

void
size_text_print(int64_t bytes, char *out, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    double number = (double)bytes;
    while (number >= 1024 && unit + 1 < COUNT_OF(names)) {
        number /= 1024;
        unit++;
    }
    bool is_whole = number == (double)(int64_t)number;
    snprintf(out, size, is_whole ? "%.0f %s" : "%.1f %s", number, names[unit]);
}
