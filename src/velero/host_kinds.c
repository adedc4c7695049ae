/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds and names of plugins: see host_kinds.h. */
#include "velero/host_kinds.h"

#include <stddef.h>
#include <string.h>

#include "base/attributes.h"
#include "velero/velero.h"

#define MAX_NAME_BYTES 253
#define MAX_LABEL_BYTES 63

enum host_kind
host_kinds_find(const char *kind)
{
    static const char *const others[] = {"ObjectStore",
                                         "BackupItemAction",
                                         VELERO_KIND_BACKUP_ACTION_V2,
                                         "RestoreItemAction",
                                         VELERO_KIND_RESTORE_ACTION_V2,
                                         VELERO_KIND_DELETE_ACTION,
                                         "ItemBlockAction"};
    if (strcmp(kind, VELERO_KIND_SNAPSHOTTER) == 0)
        return HOST_KIND_SNAPSHOTTER;
    if (strcmp(kind, VELERO_KIND_SNAPSHOTTER_V2) == 0)
        return HOST_KIND_SNAPSHOTTER_V2;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (strcmp(kind, others[i]) == 0)
            return HOST_KIND_KNOWN;
    return HOST_KIND_UNKNOWN;
}

static bool
is_alphanumeric(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static bool
is_label(const char *text, size_t size)
{
    if (!size || size > MAX_LABEL_BYTES || !is_alphanumeric(text[0]) ||
        !is_alphanumeric(text[size - 1]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_alphanumeric(text[i]) && text[i] != '-')
            return false;
    return true;
}

static bool
is_domain(const char *text, size_t size)
{
    const char *end = text + size;
    if (size > MAX_NAME_BYTES)
        return false;
    for (;;) {
        const char *dot = memchr(text, '.', (size_t)(end - text));
        if (!is_label(text, (size_t)((dot ? dot : end) - text)))
            return false;
        if (!dot)
            return true;
        text = dot + 1;
    }
}

static bool
is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f || *text == '/')
            return false;
    return true;
}

bool
host_kinds_is_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && is_domain(name, (size_t)(slash - name)) && slash[1] &&
           strlen(slash + 1) <= MAX_NAME_BYTES && is_plain(slash + 1);
}
