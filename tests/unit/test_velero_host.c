/* SPDX-License-Identifier: Apache-2.0 */
/* src/velero/host_*.c: log lines, kinds and names, the environment, the directory, the adapter. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/files.h"
#include "check.h"
#include "velero/host_adapter.h"
#include "velero/host_directory.h"
#include "velero/host_environment.h"
#include "velero/host_kinds.h"
#include "velero/host_log.h"
#include "velero/host_temporary.h"

static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};

/* ---- log lines ---- */

static void
check_line(const char *line, enum log_level level, const char *message)
{
    char got[HOST_LOG_MESSAGE_BYTES];
    CHECK_NUMBER(host_log_parse(line, strlen(line), got), level);
    CHECK_TEXT(got, message);
}

static void
lines_have_levels(void)
{
    check_line("{\"@level\":\"warn\",\"@message\":\"it is late\",\"x\":1}", LOG_WARN, "it is late");
    check_line("{\"@level\":\"error\",\"@message\":\"no\",\"error\":\"disk full\"}", LOG_ERROR,
               "no: disk full");
    check_line("{\"@level\":\"trace\",\"@message\":\"x\"}", LOG_DEBUG, "x");
    check_line("{\"@level\":\"warning\",\"@message\":\"x\"}", LOG_DEBUG, "x");
    check_line("{\"@level\":7,\"@message\":\"x\"}", LOG_DEBUG, "x");
    check_line("{\"@message\":\"x\\u001b[2J\\ny\"}", LOG_DEBUG, "x [2J y");
    check_line("{\"@message\":7}", LOG_DEBUG, "{\"@message\":7}");
    check_line("{\"@message\":\"cut", LOG_DEBUG, "{\"@message\":\"cut");
    check_line("[INFO] plain", LOG_INFO, "plain");
    check_line("[ERROR] plain", LOG_ERROR, "plain");
    check_line("panic: nil", LOG_ERROR, "panic: nil");
    check_line("\033[31mred", LOG_DEBUG, " [31mred");
    check_line("", LOG_DEBUG, "");
}

/* Counts the lines that reach the log, and returns what was last said. */
static size_t
pass_lines(struct host_log *log, const char *bytes, size_t size, size_t piece)
{
    int pipe_ends[2];
    char text[65536];
    size_t count = 0;
    CHECK(pipe2(pipe_ends, O_NONBLOCK | O_CLOEXEC) == 0);
    struct log to = {.level = LOG_INFO, .fd = pipe_ends[1]};
    host_log_init(log, &to, "p");
    for (size_t at = 0; at < size; at += piece)
        host_log_take(log, bytes + at, size - at < piece ? size - at : piece);
    host_log_end(log);
    ssize_t got = read(pipe_ends[0], text, sizeof text);
    for (ssize_t i = 0; i < got; i++)
        count += text[i] == '\n';
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return count;
}

static void
lines_are_put_together_and_bounded(void)
{
    static const char three[] = "[INFO] one\n[DEBUG] not this\n[WARN] two\n\n[ERROR] three";
    struct host_log log;
    for (size_t piece = 1; piece < sizeof three; piece++) {
        CHECK_NUMBER(pass_lines(&log, three, sizeof three - 1, piece), 3);
        CHECK_TEXT(log.last, "three");
    }
    char *many = malloc(1000 * 9 + 20000);
    for (size_t i = 0; i < 1000; i++)
        memcpy(many + 9 * i, "[WARN] x\n", 9);
    size_t passed = pass_lines(&log, many, 9000, 4096);
    /* In one second or two, and the line that tells of the others. */
    CHECK(passed >= HOST_LOG_LINES_PER_SECOND + 1 && passed <= 2 * HOST_LOG_LINES_PER_SECOND + 2);
    memset(many, 'x', 20000);
    memcpy(many, "[ERROR] ", 8);
    memcpy(many + 20000, "\n[WARN] y\n", 10);
    CHECK_NUMBER(pass_lines(&log, many, 20010, 1000), 2);
    CHECK_TEXT(log.last, "y");
    free(many);
}

static void
a_panic_is_kept(void)
{
    static const char text[] = "panic: no map\n\ngoroutine 1:\n\tmain.go:7\n";
    struct host_log log;
    CHECK_NUMBER(pass_lines(&log, text, sizeof text - 1, 100), 3);
    CHECK_TEXT(log.last, "panic: no map");
}

/* ---- kinds and names ---- */

static void
kinds_and_names_are_known(void)
{
    char name[300];
    CHECK_NUMBER(host_kinds_find("VolumeSnapshotter"), HOST_KIND_SNAPSHOTTER);
    CHECK_NUMBER(host_kinds_find("VolumeSnapshotterV2"), HOST_KIND_SNAPSHOTTER_V2);
    CHECK_NUMBER(host_kinds_find("ObjectStore"), HOST_KIND_KNOWN);
    CHECK_NUMBER(host_kinds_find("ItemBlockAction"), HOST_KIND_KNOWN);
    CHECK_NUMBER(host_kinds_find("VolumeSnapshotterV3"), HOST_KIND_UNKNOWN);
    CHECK_NUMBER(host_kinds_find(""), HOST_KIND_UNKNOWN);
    CHECK(host_kinds_is_name("velero.io/aws"));
    CHECK(host_kinds_is_name("a/b"));
    CHECK(host_kinds_is_name("a-1.b.c/Name_x"));
    static const char *const bad[] = {"",     "a",     "/",     "a/",     "/b",     "a/b/c",
                                      "A/b",  "a_/b",  "-a/b",  "a-/b",   "a..b/c", ".a/b",
                                      "a./b", "a b/c", "a/b c", "a/\033", "a/\177"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!host_kinds_is_name(bad[i]));
    memset(name, 'a', sizeof name);
    name[299] = '\0';
    CHECK(!host_kinds_is_name(name));
    name[64] = '/';
    CHECK(!host_kinds_is_name(name));
    name[63] = '/';
    name[64] = 'a';
    CHECK(host_kinds_is_name(name));
}

/* ---- the environment ---- */

static const char *
find(const char *const *environment, const char *name)
{
    const char *found = NULL;
    for (; *environment; environment++)
        if (strncmp(*environment, name, strlen(name)) == 0 && (*environment)[strlen(name)] == '=') {
            CHECK(!found);
            found = *environment + strlen(name) + 1;
        }
    return found;
}

static void
plugins_know_their_host(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    setenv("OF_THE_HOST", "1", 1);
    setenv("TMPDIR", "/elsewhere", 1);
    setenv("VELERO_PLUGIN", "other", 1);
    setenv("PLUGIN_MULTIPLEX_GRPC", "true", 1);
    setenv("NOTIFY_SOCKET", "/run/notify", 1);
    const char *const *plain = host_environment_make("/d", NULL, &arena);
    CHECK_TEXT(find(plain, "OF_THE_HOST"), "1");
    CHECK_TEXT(find(plain, "VELERO_PLUGIN"), "hello");
    CHECK_TEXT(find(plain, "PLUGIN_PROTOCOL_VERSIONS"), "2");
    CHECK_TEXT(find(plain, "PLUGIN_MIN_PORT"), "10000");
    CHECK_TEXT(find(plain, "PLUGIN_MAX_PORT"), "25000");
    CHECK_TEXT(find(plain, "PLUGIN_UNIX_SOCKET_DIR"), "/d");
    CHECK_TEXT(find(plain, "TMPDIR"), "/d");
    CHECK_TEXT(find(plain, "SKYCAP_VELERO_KINDS"), "VolumeSnapshotterV2");
    CHECK_TEXT(find(plain, "PLUGIN_CLIENT_CERT"), NULL);
    CHECK_TEXT(find(plain, "PLUGIN_MULTIPLEX_GRPC"), NULL);
    CHECK_TEXT(find(plain, "NOTIFY_SOCKET"), NULL);
    CHECK_TEXT(find(host_environment_make("/d", "PEM", &arena), "PLUGIN_CLIENT_CERT"), "PEM");
    unsetenv("VELERO_PLUGIN");
    unsetenv("PLUGIN_MULTIPLEX_GRPC");
    unsetenv("NOTIFY_SOCKET");
    unsetenv("TMPDIR");
}

/* ---- directories ---- */

static void
make_file(int directory, const char *name, mode_t mode)
{
    int fd = openat(directory, name, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
    CHECK(fd >= 0);
    fchmod(fd, mode);
    close(fd);
}

static void
fill_directory(int top)
{
    make_file(top, "b", 0755);
    make_file(top, "plain", 0644);
    make_file(top, "a", 0001);
    mkdirat(top, "below", 0755);
    make_file(top, "below/c", 0100);
    mkdirat(top, "below/d", 0755);
    make_file(top, "below/d/e", 0755);
    CHECK(symlinkat("b", top, "link") == 0);
    CHECK(symlinkat("nowhere", top, "broken") == 0);
    CHECK(symlinkat("below", top, "linked-directory") == 0);
    mkfifoat(top, "pipe", 0755);
}

static void
programs_are_found_at_any_depth(void)
{
    static const char *const wanted[] = {"a", "b", "below/c", "below/d/e", "link"};
    char path[] = "/tmp/test-velero-host-XXXXXX";
    struct arena arena AUTO(arena_clear);
    const char **paths;
    size_t count = 0;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK(mkdtemp(path) != NULL);
    int top AUTO(files_close) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fill_directory(top);
    struct error *error AUTO(error_cleanup) =
        host_directory_list(path, 5, &quiet, &arena, &paths, &count);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    CHECK_NUMBER(count, COUNT_OF(wanted));
    for (size_t i = 0; i < count && i < COUNT_OF(wanted); i++)
        CHECK_TEXT(paths[i], wanted[i]);
    error = host_directory_list(path, 4, &quiet, &arena, &paths, &count);
    CHECK(error && error->code == CODE_FAILED_PRECONDITION);
    error_free(tree_remove(AT_FDCWD, path));
    error_free(error);
    error = host_directory_list(path, 4, &quiet, &arena, &paths, &count);
    CHECK(error && error->code == CODE_NOT_FOUND);
}

/* What a host that was killed has left is removed; what another one uses is not. */
static void
left_directories_are_removed(void)
{
    char parent[] = "/tmp/test-vh-XXXXXX", left[64];
    struct host_temporary first, second;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK(mkdtemp(parent) != NULL);
    setenv("TMPDIR", parent, 1);
    snprintf(left, sizeof left, "%s/skycap-velero-left00", parent);
    mkdir(left, 0700);
    int directory AUTO(files_close) = open(left, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_file(directory, "lock", 0600);
    make_file(directory, "socket", 0600);
    futimens(directory, old);
    struct error *error AUTO(error_cleanup) = host_temporary_make(&first, &quiet);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    CHECK(access(left, F_OK) != 0);
    CHECK(strncmp(first.path, parent, strlen(parent)) == 0);
    utimensat(AT_FDCWD, first.path, old, 0);
    error = host_temporary_make(&second, &quiet);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    CHECK(access(first.path, F_OK) == 0);
    host_temporary_remove(&first, &quiet);
    host_temporary_remove(&second, &quiet);
    CHECK(rmdir(parent) == 0);
    unsetenv("TMPDIR");
}

/* ---- the adapter ---- */

static void
snapshots_of_version_1_are_complete(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const Generated__OperationProgress *progress = host_adapter_progress(&arena);
    CHECK(progress->completed);
    CHECK_TEXT(progress->err, "");
    CHECK_NUMBER(progress->ncompleted, progress->ntotal);
}

int
main(void)
{
    lines_have_levels();
    lines_are_put_together_and_bounded();
    a_panic_is_kept();
    kinds_and_names_are_known();
    plugins_know_their_host();
    programs_are_found_at_any_depth();
    left_directories_are_removed();
    snapshots_of_version_1_are_complete();
    return check_report("test_velero_host");
}
