/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the process, from /proc: see process_metrics.h. What cannot be read is left out. */
#include "rpc/runtime/process_metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/prometheus.h"

#define TEXT_SIZE 4096
/* Fields of /proc/self/stat, counted from the one after the program's name (proc(5)). */
#define STAT_USER_TICKS 11
#define STAT_SYSTEM_TICKS 12
#define STAT_START_TICKS 19
#define STAT_VIRTUAL_BYTES 20
#define STAT_RESIDENT_PAGES 21
#define STAT_FIELDS 22

static bool
read_text(const char *path, char text[TEXT_SIZE])
{
    size_t size = 0;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (size < TEXT_SIZE - 1 && (got = read(fd, text + size, TEXT_SIZE - 1 - size)) > 0)
        size += (size_t)got;
    close(fd);
    text[size] = 0;
    return size > 0;
}

/* The program's name may hold blanks and brackets; it ends with the last bracket. */
static bool
read_stat(unsigned long long fields[STAT_FIELDS])
{
    char text[TEXT_SIZE];
    char *rest = read_text("/proc/self/stat", text) ? strrchr(text, ')') : NULL;
    if (!rest)
        return false;
    rest += strlen(") ");
    for (size_t i = 0; i < STAT_FIELDS; i++) {
        const char *field = strsep(&rest, " ");
        if (!field)
            return false;
        fields[i] = strtoull(field, NULL, 10);
    }
    return true;
}

/* When the machine started, in Unix time; 0: unknown. The file is long; the line is not far. */
static unsigned long long
read_boot_time(void)
{
    char line[256];
    unsigned long long time = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file && !time && fgets(line, sizeof line, file))
        if (!strncmp(line, "btime ", strlen("btime ")))
            time = strtoull(line + strlen("btime "), NULL, 10);
    if (file)
        fclose(file);
    return time;
}

static void
print_stat(struct buffer *out)
{
    unsigned long long fields[STAT_FIELDS];
    double ticks = (double)sysconf(_SC_CLK_TCK);
    unsigned long long boot_time = read_boot_time();
    if (!read_stat(fields))
        return;
    prometheus_print_number(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
                            fields[STAT_RESIDENT_PAGES] * (uint64_t)sysconf(_SC_PAGESIZE));
    prometheus_print_number(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.",
                            fields[STAT_VIRTUAL_BYTES]);
    prometheus_print_family(out, "process_cpu_seconds_total", "counter",
                            "CPU time of the process, user and system.");
    buffer_print(out, "process_cpu_seconds_total %.2f\n",
                 (double)(fields[STAT_USER_TICKS] + fields[STAT_SYSTEM_TICKS]) / ticks);
    if (!boot_time)
        return;
    prometheus_print_family(out, "process_start_time_seconds", "gauge",
                            "When the process was started, in Unix time.");
    buffer_print(out, "process_start_time_seconds %.2f\n",
                 (double)boot_time + (double)fields[STAT_START_TICKS] / ticks);
}

/* Without the one that reads the directory. */
static void
print_fds(struct buffer *out)
{
    struct rlimit limit;
    uint64_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    if (directory) {
        closedir(directory);
        prometheus_print_number(out, "process_open_fds", "gauge", "Open file descriptors.",
                                count - 1);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        prometheus_print_number(out, "process_max_fds", "gauge",
                                "How many file descriptors may be open.", limit.rlim_cur);
}

void
process_metrics_print(struct buffer *out)
{
    print_stat(out);
    print_fds(out);
}
