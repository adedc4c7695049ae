/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a controller's block device: see oim_device.h.
 *
 * A netlink event of the kernel only triggers a new scan of the directory. The directory is also
 * scanned every second, because events may not arrive in a container.
 */
#include "drivers/oim_device.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/settings.h"
#include "rpc/loop/timers.h"

#define RESCAN_MS 1000
#define OPEN_AGAIN_MS 5
#define UEVENT_BYTES 8192
#define KERNEL_EVENTS 1 /* the multicast group of the kernel's own events */
#define MS_NS UINT64_C(1000000)

/* ---- one link ---- */

/* "0000:00:15.0", up to a slash or the end. */
static bool
is_pci_function(const char *text)
{
    static const char form[] = "xx:xx.x";
    size_t domain = strspn(text, "0123456789abcdef");
    if (domain < 4 || text[domain] != ':')
        return false;
    text += domain + 1;
    for (size_t i = 0; form[i]; i++, text++)
        if (form[i] == 'x' ? !isxdigit((unsigned char)*text) : *text != form[i])
            return false;
    return *text == '/' || *text == '\0';
}

/* Does the match end with a PCI function that is only a bridge, because another follows? */
static bool
ends_at_bridge(const char *link, const char *end)
{
    const char *last = end;
    if (last > link && last[-1] == '/')
        last--;
    const char *next = last + strcspn(last, "/");
    while (last > link && last[-1] != '/')
        last--;
    return is_pci_function(last) && *next == '/' && is_pci_function(next + 1);
}

/* "block/loop7": does it name a disk, not only a bus location? */
static bool
names_disk(const char *part)
{
    const char *slash = strrchr(part, '/');
    static const char before[] = "block";
    size_t size = slash ? (size_t)(slash - part) : 0;
    return slash && slash[1] && size >= sizeof before - 1 &&
           strncmp(slash - (sizeof before - 1), before, sizeof before - 1) == 0;
}

/* Does the match end within a number or a name? 7 is not 70, 1 not 1c, and sda not sdaa. */
static bool
is_cut_off(const char *part, const char *end)
{
    unsigned char last = (unsigned char)part[strlen(part) - 1], next = (unsigned char)*end;
    return (isdigit(last) && isxdigit(next)) || (names_disk(part) && isalnum(next));
}

static bool
has_part(const char *link, const char *part)
{
    size_t size = strlen(part);
    for (const char *at = link; (at = strstr(at, part)); at++)
        if (!is_cut_off(part, at + size) && !ends_at_bridge(link, at + size))
            return true;
    return false;
}

/* Reads a decimal number and the character `end`; *at moves behind both. */
static bool
read_number(const char **at, char end, unsigned long *out)
{
    char *rest;
    errno = 0;
    *out = strtoul(*at, &rest, 10);
    if (errno || !isdigit((unsigned char)**at) || *rest != end)
        return false;
    *at = rest + 1;
    return true;
}

struct scsi_disk {
    unsigned long target;
    unsigned long lun;
};

/* After "target": H:B:T/H:B:T:L/block/... */
static bool
read_disk(const char *at, struct scsi_disk *out)
{
    unsigned long host, bus, host_again, bus_again, target_again;
    return read_number(&at, ':', &host) && read_number(&at, ':', &bus) &&
           read_number(&at, '/', &out->target) && read_number(&at, ':', &host_again) &&
           read_number(&at, ':', &bus_again) && read_number(&at, ':', &target_again) &&
           read_number(&at, '/', &out->lun) && strncmp(at, "block/", 6) == 0 &&
           host == host_again && bus == bus_again && out->target == target_again;
}

static bool
read_scsi(const char *link, struct scsi_disk *out)
{
    static const char start[] = "/target";
    for (const char *at = link; (at = strstr(at, start)); at++)
        if (read_disk(at + sizeof start - 1, out))
            return true;
    return false;
}

/*
 * A disk is right below `block`, a partition below its disk. NVMe has a file `partition` instead.
 */
static bool
is_partition(const char *directory, const char *entry, const char *link)
{
    char path[PATH_MAX];
    const char *block = strstr(link, "/block/");
    if (block)
        return strchr(block + sizeof "/block/" - 1, '/') != NULL;
    int size = snprintf(path, sizeof path, "%s/%s/partition", directory, entry);
    return size < (int)sizeof path && access(path, F_OK) == 0;
}

/* ---- the directory ---- */

struct scan {
    const struct oim_device_query *query;
    char directory[PATH_MAX];
    bool wants_scsi;
    struct scsi_disk scsi;
    size_t count;
    struct oim_device first;
    struct buffer names; /* of all matches */
};

static bool
fits(const struct scan *scan, const char *entry, const char *link)
{
    struct scsi_disk disk;
    if (!has_part(link, scan->query->device) || is_partition(scan->directory, entry, link))
        return false;
    bool is_scsi = read_scsi(link, &disk);
    if (scan->wants_scsi)
        return is_scsi && disk.target == scan->scsi.target && disk.lun == scan->scsi.lun;
    /* A device text that names the SCSI target or the disk needs no number. */
    return !is_scsi || strstr(scan->query->device, "/target") || names_disk(scan->query->device);
}

static void
look_at_entry(struct scan *scan, int directory, const char *entry)
{
    char link[PATH_MAX];
    unsigned long major, minor;
    const char *number = entry;
    ssize_t size = readlinkat(directory, entry, link, sizeof link - 1);
    if (size <= 0 || !read_number(&number, ':', &major) || !read_number(&number, '\0', &minor))
        return;
    link[size] = '\0';
    if (!fits(scan, entry, link))
        return;
    const char *name = strrchr(link, '/') ? strrchr(link, '/') + 1 : link;
    buffer_print(&scan->names, "%s%s (%s)", scan->count ? ", " : "", name, link);
    if (scan->count++ == 0) {
        scan->first.number = makedev((unsigned)major, (unsigned)minor);
        snprintf(scan->first.name, sizeof scan->first.name, "%.*s", NAME_MAX, name);
    }
}

static void
close_directory(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static struct error *
look_at_all(struct scan *scan)
{
    DIR *directory AUTO(close_directory) = opendir(scan->directory);
    if (!directory)
        return error_from_errno(errno, "open %s", scan->directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        look_at_entry(scan, dirfd(directory), entry->d_name);
    return NULL;
}

/* "10:0" */
static bool
parse_scsi(const char *text, struct scsi_disk *out)
{
    return read_number(&text, ':', &out->target) && read_number(&text, '\0', &out->lun);
}

static struct error *
prepare(struct scan *scan, const struct oim_device_query *query)
{
    *scan = (struct scan){.query = query, .wants_scsi = query->scsi[0]};
    snprintf(scan->directory, sizeof scan->directory, "%s/dev/block", query->sysfs);
    if (!query->device[0])
        return error_new(CODE_INTERNAL, "the controller does not say which device it is");
    if (!scan->wants_scsi || parse_scsi(query->scsi, &scan->scsi))
        return NULL;
    struct buffer said AUTO(buffer_clear) = {0};
    settings_quote(&said, query->scsi);
    return error_new(CODE_INTERNAL, "the controller says %s where a SCSI target and LUN should be",
                     buffer_text(&said));
}

static const char *
describe(const struct oim_device_query *query, struct buffer *out)
{
    buffer_print(out, "block device with ");
    settings_quote(out, query->device);
    buffer_print(out, " in its link below %s/dev/block", query->sysfs);
    if (query->scsi[0]) /* checked by prepare */
        buffer_print(out, " as SCSI target and LUN %s", query->scsi);
    return buffer_text(out);
}

static struct error *
judge(const struct scan *scan, struct oim_device *out)
{
    struct buffer what AUTO(buffer_clear) = {0};
    *out = scan->first;
    if (scan->count == 1)
        return NULL;
    if (scan->count == 0)
        return error_new(CODE_NOT_FOUND, "there is no %s", describe(scan->query, &what));
    return error_new(CODE_FAILED_PRECONDITION, "there is more than one %s: %.1000s",
                     describe(scan->query, &what), buffer_text((struct buffer *)&scan->names));
}

struct error *
oim_device_find(const struct oim_device_query *query, struct oim_device *out)
{
    struct scan scan;
    struct error *error = prepare(&scan, query);
    if (!error)
        error = look_at_all(&scan);
    if (!error)
        error = judge(&scan, out);
    buffer_clear(&scan.names);
    return error;
}

/* ---- waiting ---- */

/* -1: events are not available. */
static int
open_uevents(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_EVENTS};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void
await_change(int uevents, uint64_t left_ms)
{
    struct pollfd waited = {.fd = uevents, .events = POLLIN};
    char message[UEVENT_BYTES];
    if (poll(&waited, 1, (int)(left_ms < RESCAN_MS ? left_ms : RESCAN_MS)) <= 0)
        return;
    while (recv(uevents, message, sizeof message, 0) > 0)
        continue;
}

static struct error *
is_over(const struct call *call, uint64_t end_ns)
{
    if (timers_now() >= end_ns)
        return error_new(CODE_DEADLINE_EXCEEDED, "it took too long");
    if (call && call_is_cancelled(call))
        return error_new(CODE_CANCELLED, "the caller has gone");
    return NULL;
}

/* Waits until the device is present (`is_wanted`) or gone. */
static struct error *
await(const struct oim_device_query *query, bool is_wanted, uint64_t timeout_ms,
      const struct call *call, struct oim_device *out)
{
    uint64_t end_ns = timers_now() + timeout_ms * MS_NS;
    int uevents AUTO(files_close) = open_uevents(); /* before the first scan */
    for (;;) {
        struct error *error = oim_device_find(query, out);
        bool is_absent = error && error->code == CODE_NOT_FOUND;
        if (error && !is_absent)
            return error;
        error_free(error);
        if (is_absent == !is_wanted)
            return NULL;
        error = is_over(call, end_ns);
        if (error)
            return error;
        uint64_t now_ns = timers_now();
        await_change(uevents, now_ns < end_ns ? (end_ns - now_ns) / MS_NS + 1 : 0);
    }
}

struct error *
oim_device_wait(const struct oim_device_query *query, uint64_t timeout_ms, const struct call *call,
                struct oim_device *out)
{
    struct buffer what AUTO(buffer_clear) = {0};
    struct error *error = await(query, true, timeout_ms, call, out);
    if (!error || error->code != CODE_DEADLINE_EXCEEDED)
        return error;
    error_free(error);
    return error_new(CODE_DEADLINE_EXCEEDED,
                     "the volume is mapped, but no %s has appeared within %llu ms",
                     describe(query, &what), (unsigned long long)timeout_ms);
}

struct error *
oim_device_wait_gone(const struct oim_device_query *query, uint64_t timeout_ms,
                     const struct call *call)
{
    struct oim_device device;
    return await(query, false, timeout_ms, call, &device);
}

static bool
is_not_ready(const char *path)
{
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 && (errno == ENXIO || errno == ENODEV);
}

/* Other errors are left to the user of the device. */
struct error *
oim_device_wait_open(const char *path, uint64_t timeout_ms, const struct call *call)
{
    uint64_t end_ns = timers_now() + timeout_ms * MS_NS;
    while (is_not_ready(path)) {
        struct error *error = is_over(call, end_ns);
        if (error)
            return error_wrap(error, "the disk %s is there, but cannot be opened yet", path);
        poll(NULL, 0, OPEN_AGAIN_MS);
    }
    return NULL;
}
