/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/notify.c */
#include "base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

/* The service manager's end; `name` has a NUL first where it is abstract. */
static int
open_manager(const char *name, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, name, size);
    CHECK(bind(fd, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) == 0);
    return fd;
}

/* What has arrived, "" if nothing has. */
static const char *
receive(int manager)
{
    static char text[200];
    ssize_t size = recv(manager, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    return text;
}

static void
expect_open(const char *socket, enum code code, struct notify *out)
{
    setenv("NOTIFY_SOCKET", socket, 1);
    struct error *error AUTO(error_cleanup) = notify_open(out);
    CHECK_TEXT(error_code_name(error ? error->code : CODE_OK), error_code_name(code));
    if (error)
        CHECK(strstr(error->message, "NOTIFY_SOCKET") || strstr(error->message, "WATCHDOG"));
}

static void
expect_sent(const struct notify *notify, enum code code)
{
    struct error *error AUTO(error_cleanup) = notify_send(notify, "READY=1\nSTATUS=good");
    CHECK_TEXT(error_code_name(error ? error->code : CODE_OK), error_code_name(code));
}

static void
paths_and_abstract_names_are_reached(const char *directory)
{
    char names[2][100];
    snprintf(names[0], sizeof names[0], "%s/notify", directory);
    snprintf(names[1], sizeof names[1], "@skycap-test-%d", getpid());
    for (size_t i = 0; i < 2; i++) {
        struct notify notify AUTO(notify_close) = NOTIFY_NONE;
        char bound[100];
        memcpy(bound, names[i], sizeof bound);
        if (bound[0] == '@')
            bound[0] = 0;
        int manager = open_manager(bound, strlen(names[i]));
        expect_open(names[i], CODE_OK, &notify);
        expect_sent(&notify, CODE_OK);
        CHECK_TEXT(receive(manager), "READY=1\nSTATUS=good");
        notify_ping(&notify);
        CHECK_TEXT(receive(manager), "WATCHDOG=1");
        CHECK_TEXT(receive(manager), "");
        close(manager);
    }
    unlink(names[0]);
}

static void
nobody_is_told_without_a_manager(const char *directory)
{
    struct notify notify AUTO(notify_close) = NOTIFY_NONE;
    char name[100];
    unsetenv("NOTIFY_SOCKET");
    struct error *error AUTO(error_cleanup) = notify_open(&notify);
    CHECK(!error);
    CHECK_NUMBER(notify.fd, -1);
    expect_sent(&notify, CODE_OK);
    notify_ping(&notify);
    snprintf(name, sizeof name, "%s/gone", directory);
    expect_open(name, CODE_OK, &notify);
    expect_sent(&notify, CODE_NOT_FOUND);
    notify_ping(&notify);
}

static void
names_that_are_none_are_refused(void)
{
    struct notify notify AUTO(notify_close) = NOTIFY_NONE;
    char longest[sizeof notify.address.sun_path + 1];
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = 0;
    expect_open(longest, CODE_INVALID_ARGUMENT, &notify);
    longest[sizeof longest - 2] = 0;
    expect_open(longest, CODE_OK, &notify);
    notify_close(&notify);
    expect_open("relative/notify", CODE_INVALID_ARGUMENT, &notify);
    expect_open("@", CODE_INVALID_ARGUMENT, &notify);
    CHECK_NUMBER(notify.fd, -1);
}

static void
expect_watchdog(const char *usec, const char *pid, enum code code, uint64_t watchdog_us)
{
    struct notify notify AUTO(notify_close) = NOTIFY_NONE;
    setenv("WATCHDOG_USEC", usec, 1);
    if (pid)
        setenv("WATCHDOG_PID", pid, 1);
    expect_open("/run/notify", code, &notify);
    CHECK_NUMBER(notify.watchdog_us, watchdog_us);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void
a_watchdog_is_ours_or_it_is_none(void)
{
    char own[20];
    snprintf(own, sizeof own, "%d", getpid());
    expect_watchdog("30000000", NULL, CODE_OK, 30000000);
    expect_watchdog("30000000", own, CODE_OK, 30000000);
    expect_watchdog("30000000", "1", CODE_OK, 0);
    expect_watchdog("30s", NULL, CODE_INVALID_ARGUMENT, 0);
    expect_watchdog("-1", NULL, CODE_INVALID_ARGUMENT, 0);
    expect_watchdog("99999999999999999999", NULL, CODE_INVALID_ARGUMENT, 0);
}

int
main(void)
{
    char directory[] = "/tmp/skycap-notify-XXXXXX";
    CHECK(mkdtemp(directory));
    paths_and_abstract_names_are_reached(directory);
    nobody_is_told_without_a_manager(directory);
    names_that_are_none_are_refused();
    a_watchdog_is_ours_or_it_is_none();
    rmdir(directory);
    return check_report("notify");
}
