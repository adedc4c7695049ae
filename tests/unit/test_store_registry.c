/* SPDX-License-Identifier: Apache-2.0 */
/* The store on a registry, which is a process of its own: all that is true of every store but watches, and what is its own. */
#include "etcd_ends.h"
#include "store/registry_store.h"
#include "store_facts.h"

#define PROMPT_MS 2000

static pid_t registry;
static char registry_socket[600];
static char registry_listen[64]; /* without TLS */
static struct runtime *runtime;

/* ---- the process ---- */

/* build/skycap, of build/tests/unit/test_store_registry. */
static void
find_program(char *out, size_t size)
{
    char self[400];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
    }
    snprintf(out, size, "%s/skycap", self);
}

static void
run_registry(const char *data, const char *store_url)
{
    char program[512], endpoint[640];
    find_program(program, sizeof program);
    snprintf(endpoint, sizeof endpoint, "unix://%s", registry_socket);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open(below("registry.log"), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(program, program, "serve", "--roles", "registry", "--endpoint", endpoint, "--data", data,
          "--listen", registry_listen, "--insecure", store_url ? "--store" : NULL, store_url,
          (char *)NULL);
    _exit(127);
}

static void
start_registry(const char *data, const char *store_url)
{
    snprintf(registry_socket, sizeof registry_socket, "%s", below("registry.sock"));
    snprintf(registry_listen, sizeof registry_listen, "127.0.0.1:%u", find_free_port());
    registry = fork();
    if (!registry)
        run_registry(data, store_url);
}

static void
stop_registry(int signal)
{
    kill(registry, signal);
    waitpid(registry, NULL, 0);
}

static const char *
registry_url(void)
{
    static char url[640];
    snprintf(url, sizeof url, "registry://unix://%s", registry_socket);
    return url;
}

/* Of a registry that may not answer yet. */
static struct store *
open_registry_store(void)
{
    struct store *opened;
    struct error *error =
        store_open(registry_url(), &(struct store_options){.runtime = runtime}, &opened);
    if (error) {
        fprintf(stderr, "cannot open %s: %s\n", registry_url(), error->message);
        exit(1);
    }
    return opened;
}

static struct store *
open_answering_store(void)
{
    struct store *opened = open_registry_store();
    if (first_answer(opened) != CODE_OK) {
        fprintf(stderr, "the registry has not become ready\n");
        exit(1);
    }
    return opened;
}

/* ---- the facts, each with a new registry ---- */

static char data[600];

static void
restart_registry(int signal, const char *name, size_t number, const char *store_url)
{
    if (registry)
        stop_registry(signal);
    char part[32];
    snprintf(part, sizeof part, "%s-%zu", name, number);
    snprintf(data, sizeof data, "%s", below(part));
    start_registry(data, store_url);
}

static struct store *
open_on_sqlite(size_t number)
{
    restart_registry(SIGTERM, "sqlite", number, NULL);
    return open_answering_store();
}

static struct store *meter; /* tells etcd's revision */

/* The mark of etcd's store is the next write, and the first entry the one after it. */
static struct store *
open_on_etcd(size_t number)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "registry/%zu", number);
    restart_registry(SIGTERM, "etcd", number, etcd_url(prefix));
    struct store *opened = open_answering_store();
    revision_before = revision_of(meter) + 1;
    return opened;
}

/* ---- what is its own ---- */

static void
urls_that_are_none_are_refused(void)
{
    static const char *const wrong[] = {"registry:",
                                        "registry://",
                                        "registry:host:1",
                                        "registry://nowhere",
                                        "registry://host:99999",
                                        "registry:///p",
                                        "registry://tcp://host:1",
                                        "registry://host:1/\xff"};
    const struct store_options options = {.runtime = runtime};
    struct store *opened;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CHECK_SAYS(store_open(wrong[i], &options, &opened), CODE_INVALID_ARGUMENT,
                   "say registry://HOST:PORT[/PREFIX]");
        CHECK(!opened);
    }
    CHECK_SAYS(store_open("registry://h:1", NULL, &opened), CODE_INVALID_ARGUMENT, "network");
}

static void
it_cannot_be_watched(void)
{
    struct store_watch *opened;
    store = open_on_sqlite(100);
    CHECK_SAYS(store_watch_open(store, "", 0, &opened), CODE_UNIMPLEMENTED, "cannot be watched");
    CHECK(!opened);
    store_close(store);
}

/* Other writes of the registry count too, but a cluster that has no rows is a new one. */
static void
revisions_begin_with_the_first_row(void)
{
    uint64_t first, second;
    store = open_on_sqlite(101);
    CHECK_NUMBER(revision_of(store), 0);
    CHECK_OK(put(store, "a", NULL, STORE_ANY, &first));
    CHECK(revision_of(store) == first && first > 0);
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, &second));
    CHECK(second > first);
    CHECK_OK(put(store, "a", NULL, second, NULL));
    stop_registry(SIGTERM);
    start_registry(data, NULL);
    CHECK(revision_of(store) > second); /* it waits for the registry */
    store_close(store);
}

/* More rows than one page has, and more bytes. */
static void
a_long_list_comes_whole_and_in_order(void)
{
    enum { ROWS = 1300 };
    static char keys[ROWS][16];
    static uint8_t large[REGISTRY_STORE_MAX_VALUE];
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, 0);
    struct store_list found;
    store = open_on_sqlite(102);
    for (size_t i = 0; i < ROWS;) {
        struct store_change changes[REGISTRY_STORE_MAX_CHANGES];
        size_t n = 0;
        for (; n < COUNT_OF(changes) && i < ROWS; n++, i++) {
            snprintf(keys[i], sizeof keys[i], "n/%05zu", i);
            changes[n] =
                (struct store_change){keys[i], large, i % 10 ? 1 : sizeof large, STORE_ABSENT};
        }
        CHECK_OK(store_write(store, changes, n, NULL));
    }
    CHECK_OK(store_list(store, "n/", NULL, 0, &arena, &found));
    CHECK_NUMBER(found.count, ROWS);
    CHECK(!found.has_more);
    for (size_t i = 0; i < found.count; i++)
        CHECK_TEXT(found.entries[i].key, keys[i]);
    CHECK_OK(store_list(store, "n/", keys[99], 1100, &arena, &found));
    CHECK_NUMBER(found.count, 1100);
    CHECK(found.has_more);
    CHECK_TEXT(found.entries[1099].key, keys[1199]);
    CHECK_OK(store_list(store, "n/", keys[99], ROWS - 100, &arena, &found));
    CHECK(found.count == ROWS - 100 && !found.has_more);
    store_close(store);
}

/* `prefix` with its slash, or "". */
static struct store *
open_prefix(const char *prefix)
{
    char url[128];
    struct store *opened = NULL;
    snprintf(url, sizeof url, "registry://%s%s", registry_listen, prefix);
    CHECK_OK(store_open(url, &(struct store_options){.runtime = runtime}, &opened));
    return opened;
}

static void
prefixes_are_stores_of_their_own(void)
{
    store_close(open_on_sqlite(106));
    struct store *all = open_prefix(""), *one = open_prefix("/one"), *two = open_prefix("/two/");
    CHECK_OK(put(one, "a/1", "1", STORE_ABSENT, NULL));
    CHECK_OK(put(two, "a/1", "2", STORE_ABSENT, NULL));
    CHECK_OK(put(one, "b", "1", STORE_ABSENT, NULL));
    CHECK_TEXT(get(one, "a/1"), "1");
    CHECK_TEXT(get(two, "a/1"), "2");
    CHECK_TEXT(get(all, "one/a/1"), "1");
    CHECK_TEXT(get(all, "a/1"), NULL);
    store = one;
    CHECK_TEXT(list("", NULL, 0), "a/1,b,");
    CHECK_TEXT(list("a", NULL, 0), "a/1,");
    CHECK_TEXT(list("", "a/1", 0), "b,");
    store = two;
    CHECK_TEXT(list("", NULL, 0), "a/1,");
    store = all;
    CHECK_TEXT(list("", NULL, 2), "one/a/1,one/b,+");
    CHECK_CODE(put(two, "a/1", "3", STORE_ABSENT, NULL), CODE_ABORTED);
    CHECK_OK(put(two, "a/1", NULL, STORE_ANY, NULL));
    CHECK_TEXT(get(one, "a/1"), "1");
    store_close(all);
    store_close(one);
    store_close(two);
}

static void
a_store_opens_although_nobody_answers(void)
{
    uint64_t revision;
    stop_registry(SIGTERM);
    double start = now_ms();
    store = open_registry_store();
    CHECK_SAYS(store_revision(store, &revision), CODE_UNAVAILABLE, "does not answer");
    struct error *error AUTO(error_cleanup) = put(store, "a", "1", STORE_ANY, NULL);
    CHECK(error && error->code == CODE_UNAVAILABLE && !error->in_doubt);
    CHECK(now_ms() - start < PROMPT_MS);
    start_registry(data, NULL);
    CHECK_NUMBER(first_answer(store), CODE_OK);
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    store_close(store);
}

/* Once the lost connection was noticed: before, a write is in doubt. */
static void
kill_registry(void)
{
    stop_registry(SIGKILL);
    sleep_ms(200);
}

/* A restart is waited for; if it takes too long that is told, and nothing is in doubt. */
static void
a_write_waits_while_the_registry_starts_again(void)
{
    store = open_on_sqlite(103);
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, NULL));
    kill_registry();
    start_registry(data, NULL);
    CHECK_OK(put(store, "b", "1", STORE_ABSENT, NULL));
    CHECK_TEXT(get(store, "a"), "1");
    kill_registry();
    double start = now_ms();
    struct error *error AUTO(error_cleanup) = put(store, "c", "1", STORE_ABSENT, NULL);
    CHECK(error && error->code == CODE_UNAVAILABLE && !error->in_doubt);
    CHECK(now_ms() - start > 4000 && now_ms() - start < 7000);
    start_registry(data, NULL);
    CHECK_TEXT(get(store, "c"), NULL);
    store_close(store);
}

static void
a_write_without_an_answer_is_in_doubt(void)
{
    store = open_on_sqlite(104);
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, NULL));
    kill(registry, SIGSTOP);
    waitpid(registry, NULL, WUNTRACED);
    struct error *error AUTO(error_cleanup) = put(store, "a", "2", STORE_ANY, NULL);
    CHECK(error && error->code == CODE_UNAVAILABLE && error->in_doubt);
    CHECK(error && strstr(error->message, "is not known"));
    kill(registry, SIGCONT);
    store_close(store);
}

static void *
kill_soon(void *unused)
{
    sleep_ms(200);
    kill(registry, SIGKILL);
    return unused;
}

static void
a_write_whose_connection_is_lost_is_in_doubt(void)
{
    pthread_t thread;
    store = open_on_sqlite(107);
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, NULL));
    kill(registry, SIGSTOP);
    waitpid(registry, NULL, WUNTRACED);
    CHECK(!pthread_create(&thread, NULL, kill_soon, NULL));
    double start = now_ms();
    struct error *error AUTO(error_cleanup) = put(store, "a", "2", STORE_ANY, NULL);
    CHECK(error && error->code == CODE_UNAVAILABLE && error->in_doubt);
    CHECK(now_ms() - start < PROMPT_MS);
    pthread_join(thread, NULL);
    store_close(store);
}

/* The registry answers that it does not know either. */
static void
a_write_that_etcd_does_not_answer_is_in_doubt(void)
{
    store = open_on_etcd(100);
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, NULL));
    freeze_etcd();
    struct error *error AUTO(error_cleanup) = put(store, "a", "2", STORE_ANY, NULL);
    CHECK(error && error->code == CODE_UNAVAILABLE && error->in_doubt);
    CHECK(error && strstr(error->message, "etcd at"));
    kill(etcd_process, SIGCONT);
    store_close(store);
}

static void *
stop_soon(void *unused)
{
    sleep_ms(200);
    store_stop(store);
    return unused;
}

static void
who_waits_for_the_registry_is_sent_on(void)
{
    pthread_t thread;
    store = open_on_sqlite(105);
    kill(registry, SIGSTOP);
    waitpid(registry, NULL, WUNTRACED);
    CHECK(!pthread_create(&thread, NULL, stop_soon, NULL));
    double start = now_ms();
    CHECK_CODE(put(store, "a", "1", STORE_ANY, NULL), CODE_UNAVAILABLE);
    CHECK_CODE(put(store, "a", "1", STORE_ANY, NULL), CODE_UNAVAILABLE);
    CHECK(now_ms() - start < PROMPT_MS);
    pthread_join(thread, NULL);
    store_close(store);
    kill(registry, SIGCONT);
}

static bool
has_etcd(void)
{
    return system("command -v etcd >/dev/null") == 0;
}

int
main(void)
{
    static const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR};
    make_test_directory();
    if (code_of(runtime_open(&(struct runtime_options){.log = &log}, &runtime)) != CODE_OK)
        return 1;
    is_on_registry = true;
    limits.key = REGISTRY_STORE_MAX_KEY;
    limits.value = REGISTRY_STORE_MAX_VALUE;
    limits.changes = REGISTRY_STORE_MAX_CHANGES;
    check_facts("a registry on sqlite", open_on_sqlite);
    urls_that_are_none_are_refused();
    it_cannot_be_watched();
    revisions_begin_with_the_first_row();
    a_long_list_comes_whole_and_in_order();
    prefixes_are_stores_of_their_own();
    a_store_opens_although_nobody_answers();
    a_write_waits_while_the_registry_starts_again();
    a_write_without_an_answer_is_in_doubt();
    a_write_whose_connection_is_lost_is_in_doubt();
    who_waits_for_the_registry_is_sent_on();
    if (has_etcd()) {
        start_etcd();
        is_etcd = true;
        meter = open_etcd_store("meter");
        CHECK_OK(put(meter, "a", "1", STORE_ANY, NULL));
        check_facts("a registry on etcd", open_on_etcd);
        a_write_that_etcd_does_not_answer_is_in_doubt();
        store_close(meter);
        stop_registry(SIGTERM);
        stop_etcd();
    } else {
        stop_registry(SIGTERM);
    }
    runtime_close(runtime);
    remove_test_directory();
    return check_report("test_store_registry");
}
