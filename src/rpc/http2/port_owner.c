/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who listens on a port: see port_owner.h. /proc/net/tcp tells the user and the inode of a socket;
 * the process is the one that has a descriptor of that inode. Only root can look at all processes.
 */
#include "rpc/http2/port_owner.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

#define LISTENING 0x0a

struct owner {
    unsigned user;
    unsigned long inode;
};

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  USER  0 INODE" */
static bool
find_in(const char *table, uint16_t port, struct owner *out)
{
    char line[512];
    bool is_found = false;
    FILE *file = fopen(table, "re");
    while (file && !is_found && fgets(line, sizeof line, file)) {
        unsigned there, state;
        /* The kernel's own text. NOLINTNEXTLINE(cert-err34-c) */
        is_found = sscanf(line, " %*u: %*[0-9A-F]:%x %*s %x %*s %*s %*s %u %*s %lu", &there, &state,
                          &out->user, &out->inode) == 4 &&
                   there == port && state == LISTENING;
    }
    if (file)
        fclose(file);
    return is_found;
}

static bool
has_socket(const char *process, const char *wanted)
{
    char path[300], target[64];
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%.20s/fd", process);
    DIR *descriptors = opendir(path);
    struct dirent *entry;
    while (descriptors && !is_found && (entry = readdir(descriptors))) {
        ssize_t size = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);
        target[size > 0 ? size : 0] = '\0';
        is_found = strcmp(target, wanted) == 0;
    }
    if (descriptors)
        closedir(descriptors);
    return is_found;
}

/* Empty if it cannot be seen. */
static void
find_process(unsigned long inode, char *out, size_t size)
{
    char wanted[64], path[64], name[64] = "";
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    while (processes && !out[0] && (entry = readdir(processes))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !has_socket(entry->d_name, wanted))
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/comm", entry->d_name);
        files_read_line(path, name, sizeof name);
        snprintf(out, size, "process %.20s (%s)", entry->d_name, name);
    }
    if (processes)
        closedir(processes);
}

const char *
port_owner_print(uint16_t port, char *out, size_t size)
{
    struct owner owner;
    char process[128] = "";
    out[0] = '\0';
    if (!find_in("/proc/net/tcp", port, &owner) && !find_in("/proc/net/tcp6", port, &owner))
        return out;
    find_process(owner.inode, process, sizeof process);
    snprintf(out, size, "%s of user %u", process[0] ? process : "a process", owner.user);
    return out;
}
