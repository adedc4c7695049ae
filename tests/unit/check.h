/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks for unit tests. A failed one prints where and what, and the test goes on; `return
 * check_report("name");` at the end of main says it to the runner. Nothing is printed when all is
 * well.
 */
#ifndef UNIT_CHECK_H
#define UNIT_CHECK_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static atomic_uint check_made, check_failed; /* threads check, too */

static inline bool
check_count(bool is_good, const char *file, int line)
{
    check_made++;
    if (!is_good) {
        check_failed++;
        fprintf(stderr, "%s:%d: ", file, line);
    }
    return is_good;
}

static inline void
check_condition(bool is_good, const char *text, const char *file, int line)
{
    if (!check_count(is_good, file, line))
        fprintf(stderr, "%s\n", text);
}

static inline void
check_text(const char *actual, const char *expected, const char *file, int line)
{
    bool is_same = actual && expected ? !strcmp(actual, expected) : actual == expected;
    if (!check_count(is_same, file, line))
        fprintf(stderr, "got      %s\n    expected %s\n", actual ? actual : "NULL",
                expected ? expected : "NULL");
}

static inline void
check_number(intmax_t actual, intmax_t expected, const char *file, int line)
{
    if (!check_count(actual == expected, file, line))
        fprintf(stderr, "got %" PRIdMAX ", expected %" PRIdMAX "\n", actual, expected);
}

#define CHECK(condition) check_condition((condition), #condition, __FILE__, __LINE__)
#define CHECK_TEXT(actual, expected) check_text((actual), (expected), __FILE__, __LINE__)
#define CHECK_NUMBER(actual, expected)                                                             \
    check_number((intmax_t)(actual), (intmax_t)(expected), __FILE__, __LINE__)

/* The exit code of the test. A test that checked nothing has failed. */
static inline int
check_report(const char *name)
{
    if (!check_made)
        fprintf(stderr, "%s: no check was made\n", name);
    if (check_failed)
        fprintf(stderr, "%s: %u of %u checks failed\n", name, check_failed, check_made);
    return !check_made || check_failed ? 1 : 0;
}

#endif
