/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/memory.c: what only the start needed goes */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* Text of the program that nothing else touches. */
static const char ballast[2 << 20] = "b";

/* KiB of files that are mapped and in memory. */
static long
file_memory(void)
{
    char line[128];
    long size = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "RssFile: %ld", &size) == 1)
            break;
    if (status)
        fclose(status);
    return size;
}

static int
touch(const char *bytes, size_t size)
{
    const volatile char *each = bytes;
    int sum = 0;
    for (size_t i = 0; i < size; i += 4096)
        sum += each[i];
    return sum;
}

static void
pages_of_the_program_go_and_come_back(void)
{
    CHECK_NUMBER(touch(ballast, sizeof ballast), 'b');
    long before = file_memory();
    memory_drop_start();
    long after = file_memory();
    CHECK(before > 2000 && after >= 0);
    CHECK(after <= before - 1000); /* the kernel counts by the hundred */
    CHECK_NUMBER(touch(ballast, sizeof ballast), 'b');
}

int
main(void)
{
    pages_of_the_program_go_and_come_back();
    return check_report("test_memory");
}
