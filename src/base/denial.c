/* SPDX-License-Identifier: Apache-2.0 */
/* Why root is denied something: see denial.h. */
#include "base/denial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

#define SYS_ADMIN 21

/* A number in /proc/self/status; `otherwise` if the line is not there. */
static unsigned long long
read_status(const char *name, int base, unsigned long long otherwise)
{
    char line[256];
    size_t size = strlen(name);
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, name, size) == 0 && line[size] == ':')
            otherwise = strtoull(line + size + 1, NULL, base);
    if (status)
        fclose(status);
    return otherwise;
}

static bool
is_selinux_enforcing(void)
{
    char line[16];
    return files_read_line("/sys/fs/selinux/enforce", line, sizeof line) == 0 && line[0] == '1';
}

/* AppArmor says "unconfined", or "PROFILE (enforce)". SELinux says a context. */
static bool
read_label(char *label, size_t size)
{
    if (files_read_line("/proc/self/attr/current", label, size) != 0)
        label[0] = '\0';
    return label[0] != '\0';
}

static void
find_reason(char *out, size_t size)
{
    char label[160];
    bool has_label = read_label(label, sizeof label);
    if (is_selinux_enforcing())
        snprintf(out, size,
                 "SELinux is enforcing and this process has the context %s: look for the denial "
                 "with `ausearch -m avc -ts recent`",
                 has_label ? label : "(unknown)");
    else if (has_label && strstr(label, "(enforce)"))
        snprintf(out, size,
                 "AppArmor confines this process to the profile %s: look for the denial with "
                 "`journalctl -k --grep apparmor`",
                 label);
    else if (!(read_status("CapEff", 16, ~0ull) & 1ull << SYS_ADMIN))
        snprintf(out, size,
                 "this process has no CAP_SYS_ADMIN: in a container, run it privileged (podman run "
                 "--privileged, securityContext.privileged: true)");
    else if (read_status("Seccomp", 10, 0) == 2)
        snprintf(out, size,
                 "a filter of system calls (seccomp) is in force: look at SystemCallFilter= of the "
                 "unit, or run the container privileged");
}

struct error *
denial_explain(struct error *error, int failed)
{
    char reason[512] = "";
    if (!error || (failed != EACCES && failed != EPERM) || geteuid() != 0)
        return error;
    find_reason(reason, sizeof reason);
    return reason[0] ? error_advise(error, "%s", reason) : error;
}
