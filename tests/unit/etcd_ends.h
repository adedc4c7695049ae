/* SPDX-License-Identifier: Apache-2.0 */
/* One member of etcd on the loopback, for tests, with its data below the test's directory. */
#ifndef UNIT_ETCD_ENDS_H
#define UNIT_ETCD_ENDS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rpc/runtime/runtime.h"
#include "store_ends.h"

static pid_t etcd_process;
static unsigned etcd_port;
static struct runtime *etcd_runtime;

static inline unsigned
find_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("find a port");
        exit(1);
    }
    close(fd);
    return ntohs(address.sin_port);
}

static inline void
run_etcd(const char *directory, unsigned client_port, unsigned peer_port)
{
    char client[64], peer[64], cluster[80];
    snprintf(client, sizeof client, "http://127.0.0.1:%u", client_port);
    snprintf(peer, sizeof peer, "http://127.0.0.1:%u", peer_port);
    snprintf(cluster, sizeof cluster, "test=%s", peer);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open(below("etcd.log"), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execlp("etcd", "etcd", "--name", "test", "--data-dir", directory, "--listen-client-urls",
           client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
           "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, (char *)NULL);
    _exit(127);
}

/* The URL of a store with that prefix. Lives until the next call but three. */
static inline const char *
etcd_url(const char *prefix)
{
    static char urls[4][128];
    static unsigned next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof urls[0], "etcd://127.0.0.1:%u/%s", etcd_port, prefix);
    return url;
}

static inline struct error *
try_etcd_store(const char *prefix, struct store **out)
{
    return store_open(etcd_url(prefix), &(struct store_options){.runtime = etcd_runtime}, out);
}

static inline struct store *
open_etcd_store(const char *prefix)
{
    struct store *opened;
    struct error *error = try_etcd_store(prefix, &opened);
    if (error) {
        fprintf(stderr, "cannot open %s: %s\n", etcd_url(prefix), error->message);
        exit(1);
    }
    return opened;
}

/* Of a store that was opened before etcd answered. */
static inline enum code
first_answer(struct store *opened)
{
    uint64_t revision;
    enum code code = CODE_UNAVAILABLE;
    for (int i = 0; i < 500 && code == CODE_UNAVAILABLE; i++) {
        code = code_of(store_revision(opened, &revision));
        if (code == CODE_UNAVAILABLE)
            sleep_ms(50);
    }
    return code;
}

static inline void
start_etcd(void)
{
    unsigned peer_port = find_free_port();
    etcd_port = find_free_port();
    etcd_process = fork();
    if (!etcd_process)
        run_etcd(below("etcd"), etcd_port, peer_port);
    static const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR};
    if (code_of(runtime_open(&(struct runtime_options){.log = &log}, &etcd_runtime)) != CODE_OK)
        exit(1);
    struct store *opened = open_etcd_store("ready");
    bool is_ready = first_answer(opened) == CODE_OK;
    store_close(opened);
    if (!is_ready) {
        fprintf(stderr, "etcd has not become ready\n");
        kill(etcd_process, SIGKILL);
        exit(1);
    }
}

/* Returns when none of its threads runs any more, until SIGCONT. */
static inline void
freeze_etcd(void)
{
    kill(etcd_process, SIGSTOP);
    waitpid(etcd_process, NULL, WUNTRACED);
}

static inline void
stop_etcd(void)
{
    runtime_close(etcd_runtime);
    kill(etcd_process, SIGTERM);
    waitpid(etcd_process, NULL, 0);
}

/* Ends the test as skipped where there is no etcd. */
static inline void
require_etcd(void)
{
    if (system("command -v etcd >/dev/null") == 0)
        return;
    printf("needs etcd, which is not installed\n");
    exit(77);
}

#endif
