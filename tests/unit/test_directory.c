/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of connection files: what is read of whatever may lie there, and what a wait sees. */
#include "connections/config/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "check.h"

static char base[PATH_MAX / 2]; /* of the test; it goes when the test ends */
static char path[PATH_MAX];     /* the watched directory */
static struct arena arena;

/* ---- helpers ---- */

static int64_t
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
sleep_ms(int milliseconds)
{
    poll(NULL, 0, milliseconds);
}

static const char *
in(const char *directory, const char *name)
{
    return arena_print(&arena, "%s/%s", directory, name);
}

static void
write_file(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void
remove_below(const char *directory)
{
    char command[PATH_MAX + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    CHECK(system(command) == 0);
}

static struct directory *
open_directory(void)
{
    struct directory *directory = NULL;
    remove_below(path);
    CHECK(mkdir(path, 0700) == 0);
    struct error *error AUTO(error_cleanup) = directory_open(path, &directory);
    CHECK_TEXT(error ? error->message : "", "");
    return directory;
}

static struct directory_files
read_all(struct directory *directory)
{
    struct directory_files files = {0};
    struct error *error AUTO(error_cleanup) = directory_read(directory, &arena, &files);
    CHECK_TEXT(error ? error->message : "", "");
    return files;
}

/* "name=text name!trouble ..." */
static const char *
shown(struct directory *directory)
{
    struct buffer out AUTO(buffer_clear) = {0};
    struct directory_files files = read_all(directory);
    for (size_t i = 0; i < files.count; i++) {
        const struct directory_file *file = &files.items[i];
        CHECK(!file->text == !!file->trouble);
        buffer_print(&out, "%s%s%s%s", i ? " " : "", file->name, file->text ? "=" : "!",
                     file->text ? file->text : file->trouble);
    }
    return arena_string(&arena, buffer_text(&out));
}

/* How long a wait took. */
static int
waited_ms(struct directory *directory, uint32_t timeout_ms)
{
    int64_t start = now_ms();
    directory_wait(directory, timeout_ms);
    return (int)(now_ms() - start);
}

static void
wait_until_quiet(struct directory *directory)
{
    while (waited_ms(directory, 200) < 200)
        ;
}

/* ---- reading ---- */

static void
test_open_refuses(void)
{
    struct directory *directory = NULL;
    struct error *missing AUTO(error_cleanup) = directory_open(in(base, "none"), &directory);
    CHECK(missing && missing->code == CODE_INVALID_ARGUMENT);
    write_file(in(base, "file"), "");
    struct error *file AUTO(error_cleanup) = directory_open(in(base, "file"), &directory);
    CHECK(file && file->code == CODE_INVALID_ARGUMENT && strstr(file->message, "Not a directory"));
    CHECK(!directory);
    directory_close(NULL);
}

static void
test_names(void)
{
    struct directory *directory = open_directory();
    CHECK_TEXT(shown(directory), "");
    write_file(in(path, "b.yaml"), "two");
    write_file(in(path, "a.yml"), "");
    write_file(in(path, ".hidden.yaml"), "x");
    write_file(in(path, ".yaml"), "x");
    write_file(in(path, "a.yaml~"), "x");
    write_file(in(path, "README"), "x");
    write_file(in(path, "c.json"), "x");
    CHECK_TEXT(shown(directory), "a= b=two");
    struct directory_files files = read_all(directory);
    CHECK_TEXT(files.items[0].file, "a.yml");
    CHECK_NUMBER(files.items[1].size, 3);
    write_file(in(path, "Bad_Name.yaml"), "x");
    write_file(in(path, "\xff\n.yaml"), "x");
    files = read_all(directory);
    CHECK_NUMBER(files.count, 4);
    CHECK_TEXT(files.items[0].name, "??");
    CHECK_TEXT(files.items[0].file, "??.yaml");
    CHECK_TEXT(files.items[1].name, "Bad_Name");
    CHECK(!files.items[1].text &&
          strstr(files.items[1].trouble, "\"Bad_Name\" is not a connection name"));
    CHECK_TEXT(files.items[3].text, "two");
    directory_close(directory);
}

static void
test_twins(void)
{
    struct directory *directory = open_directory();
    write_file(in(path, "x.yaml"), "1");
    write_file(in(path, "x.yml"), "2");
    write_file(in(path, "y.yml"), "3");
    const char *told = "x!x.yaml and x.yml are both there: remove one";
    CHECK_TEXT(shown(directory), arena_print(&arena, "%s %s y=3", told, told));
    unlink(in(path, "x.yaml"));
    CHECK_TEXT(shown(directory), "x=2 y=3");
    directory_close(directory);
}

static void
make_socket(const char *file)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(strlen(file) < sizeof name.sun_path);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", file);
    CHECK(bind(fd, (struct sockaddr *)&name, sizeof name) == 0);
    close(fd);
}

/* None of them is waited for. */
static void
test_what_is_no_file(void)
{
    struct directory *directory = open_directory();
    CHECK(mkfifo(in(path, "a.yaml"), 0600) == 0);
    CHECK(mkdir(in(path, "b.yaml"), 0700) == 0);
    make_socket(in(path, "c.yaml"));
    CHECK(symlink("/dev/zero", in(path, "d.yaml")) == 0);
    CHECK(symlink("nowhere", in(path, "e.yaml")) == 0);
    CHECK(symlink("f.yaml", in(path, "f.yaml")) == 0);
    CHECK_TEXT(shown(directory),
               "a!it is no regular file b!it is no regular file c!it is no regular file "
               "d!it is no regular file e!it is a link to something that is not there "
               "f!it cannot be read: Too many levels of symbolic links");
    directory_close(directory);
}

static void
test_sizes_and_modes(void)
{
    struct directory *directory = open_directory();
    size_t limit = 256u << 10;
    char *text AUTO(memory_cleanup) = memory_new(limit + 2);
    memset(text, 'x', limit + 1);
    text[limit + 1] = '\0';
    write_file(in(path, "large.yaml"), text);
    text[limit] = '\0';
    write_file(in(path, "most.yaml"), text);
    struct directory_files files = read_all(directory);
    CHECK_NUMBER(files.count, 2);
    CHECK_TEXT(files.items[0].trouble, "it is larger than 256 KiB");
    CHECK_NUMBER(files.items[1].size, limit);
    CHECK(files.items[1].text && memcmp(files.items[1].text, text, limit) == 0);
    /* A sparse giant is refused by its size, before anything is read. */
    CHECK(truncate(in(path, "large.yaml"), INT64_C(1) << 40) == 0);
    CHECK_TEXT(read_all(directory).items[0].trouble, "it is larger than 256 KiB");
    directory_close(directory);
}

static void
test_unreadable(void)
{
    if (geteuid() == 0)
        return; /* root reads everything; /proc has files that even root cannot, below */
    struct directory *directory = open_directory();
    write_file(in(path, "a.yaml"), "x");
    CHECK(chmod(in(path, "a.yaml"), 0) == 0);
    CHECK_TEXT(shown(directory), "a!it cannot be read: Permission denied");
    directory_close(directory);
}

/* /proc/self/mem is a regular file whose first page cannot be read. */
static void
test_read_error(void)
{
    struct directory *directory = open_directory();
    CHECK(symlink("/proc/self/mem", in(path, "a.yaml")) == 0);
    CHECK_TEXT(shown(directory), "a!it cannot be read: Input/output error");
    directory_close(directory);
}

static void
test_too_many(void)
{
    struct directory *directory = open_directory();
    for (int i = 0; i <= DIRECTORY_MAX_FILES; i++) {
        int fd = open(arena_print(&arena, "%s/c%d.yaml", path, i), O_CREAT | O_WRONLY, 0600);
        close(fd);
    }
    struct directory_files files = {0};
    struct error *error AUTO(error_cleanup) = directory_read(directory, &arena, &files);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    unlink(in(path, "c0.yaml"));
    CHECK_NUMBER(read_all(directory).count, DIRECTORY_MAX_FILES);
    directory_close(directory);
}

static void
test_single_files(void)
{
    struct directory_file file;
    remove_below(path);
    CHECK(mkdir(path, 0700) == 0);
    write_file(in(path, "fast.yaml"), "driver: local");
    directory_read_file(in(path, "fast.yaml"), &arena, &file);
    CHECK_TEXT(file.name, "fast");
    CHECK_TEXT(file.file, in(path, "fast.yaml"));
    CHECK_TEXT(file.text, "driver: local");
    CHECK(!file.trouble);
    directory_read_file(in(path, "none.yaml"), &arena, &file);
    CHECK_TEXT(file.trouble, "it cannot be read: No such file or directory");
    directory_read_file(in(path, "fast.txt"), &arena, &file);
    CHECK_TEXT(file.trouble, "the name of a connection's file ends with .yaml");
    directory_read_file(in(path, "Fast.yaml"), &arena, &file);
    CHECK(file.trouble && strstr(file.trouble, "is not a connection name"));
}

/* ---- waiting ---- */

static void
test_time_passes(void)
{
    struct directory *directory = open_directory();
    int waited = waited_ms(directory, 120);
    CHECK(waited >= 120 && waited < 2000);
    read_all(directory);
    CHECK(waited_ms(directory, 120) >= 120); /* reading is no change */
    CHECK(waited_ms(directory, 0) < 1000);
    directory_close(directory);
}

/* Whatever is done to a file is seen at once, and after the writers' moment. */
static void
test_changes(void)
{
    struct directory *directory = open_directory();
    const char *file = in(path, "a.yaml");
    write_file(file, "1");
    int waited = waited_ms(directory, 30000);
    CHECK(waited >= 50 && waited < 5000);
    CHECK_TEXT(shown(directory), "a=1");
    CHECK(rename(file, in(path, "b.yaml")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "b=1");
    CHECK(chmod(in(path, "b.yaml"), 0644) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    write_file(in(base, "new"), "2");
    CHECK(rename(in(base, "new"), in(path, "b.yaml")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "b=2");
    CHECK(link(in(path, "b.yaml"), in(path, "c.yaml")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK(unlink(in(path, "b.yaml")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "c=2");
    CHECK(waited_ms(directory, 150) >= 150);
    directory_close(directory);
}

/* A Secret as Kubernetes mounts and changes it. */
static void
test_data_swap(void)
{
    struct directory *directory = open_directory();
    CHECK(mkdir(in(path, "..2024_1"), 0700) == 0);
    write_file(in(path, "..2024_1/a.yaml"), "old");
    write_file(in(path, "..2024_1/b.yaml"), "gone");
    CHECK(symlink("..2024_1", in(path, "..data")) == 0);
    CHECK(symlink("..data/a.yaml", in(path, "a.yaml")) == 0);
    CHECK(symlink("..data/b.yaml", in(path, "b.yaml")) == 0);
    directory_wait(directory, 30000);
    CHECK_TEXT(shown(directory), "a=old b=gone");
    CHECK(mkdir(in(path, "..2024_2"), 0700) == 0);
    write_file(in(path, "..2024_2/a.yaml"), "new");
    CHECK(symlink("..2024_2", in(path, "..data_tmp")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "a=old b=gone");
    CHECK(rename(in(path, "..data_tmp"), in(path, "..data")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "a=new b!it is a link to something that is not there");
    CHECK(unlink(in(path, "b.yaml")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "a=new");
    directory_close(directory);
}

static void
test_replaced(void)
{
    struct directory *directory = open_directory();
    write_file(in(path, "a.yaml"), "1");
    directory_wait(directory, 30000);
    CHECK(rename(path, in(base, "aside")) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    struct directory_files files = {0};
    struct error *error AUTO(error_cleanup) = directory_read(directory, &arena, &files);
    CHECK(error && error->code == CODE_NOT_FOUND);
    directory_wait(directory, 1500); /* nothing there: no busy loop, and it may come back */
    CHECK(waited_ms(directory, 150) >= 150);
    CHECK(mkdir(path, 0700) == 0);
    write_file(in(path, "b.yaml"), "2");
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "b=2");
    /* The old one is not listened to any more, the new one is. */
    write_file(in(base, "aside/a.yaml"), "3");
    CHECK(waited_ms(directory, 150) >= 150);
    write_file(in(path, "b.yaml"), "4");
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "b=4");
    directory_close(directory);
    remove_below(in(base, "aside"));
}

/* Removed and made again at once: often with the same inode number. */
static void
test_removed(void)
{
    struct directory *directory = open_directory();
    for (int i = 0; i < 5; i++) {
        remove_below(path);
        CHECK(mkdir(path, 0700) == 0);
        write_file(in(path, "a.yaml"), arena_print(&arena, "%d", i));
        CHECK(waited_ms(directory, 30000) < 5000);
        CHECK_TEXT(shown(directory), arena_print(&arena, "a=%d", i));
        wait_until_quiet(directory); /* what is left of the removal */
        write_file(in(path, "a.yaml"), "again");
        CHECK(waited_ms(directory, 30000) < 5000);
        CHECK_TEXT(shown(directory), "a=again");
    }
    directory_close(directory);
}

/* The path is a link, and is made to lead elsewhere: nothing tells, but it is looked at now and then. */
static void
test_path_is_a_link(void)
{
    const char *link = in(base, "link");
    struct directory *directory = NULL;
    CHECK(mkdir(in(base, "one"), 0700) == 0 && mkdir(in(base, "two"), 0700) == 0);
    write_file(in(base, "two/b.yaml"), "2");
    CHECK(symlink("one", link) == 0);
    struct error *error AUTO(error_cleanup) = directory_open(link, &directory);
    CHECK(!error);
    CHECK(symlink("two", in(base, "new")) == 0 && rename(in(base, "new"), link) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "b=2");
    write_file(in(base, "two/b.yaml"), "3");
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "b=3");
    directory_close(directory);
    CHECK(unlink(link) == 0);
}

/* ---- threads ---- */

struct writer {
    struct directory *directory;
    int times;
    int step_ms;
};

static void *
write_many(void *context)
{
    const struct writer *writer = context;
    char file[PATH_MAX + 20];
    snprintf(file, sizeof file, "%s/noise.yaml", path);
    for (int i = 0; i < writer->times; i++) {
        int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, "x", 1) != 1)
            abort();
        close(fd);
        sleep_ms(writer->step_ms);
    }
    return NULL;
}

/* How many of ten writes in a row were made when the wait was over. */
static size_t
grouped(struct directory *directory)
{
    struct writer few = {directory, 10, 5};
    pthread_t thread;
    unlink(in(path, "noise.yaml"));
    wait_until_quiet(directory);
    CHECK(pthread_create(&thread, NULL, write_many, &few) == 0);
    directory_wait(directory, 30000);
    size_t size = read_all(directory).items[0].size;
    pthread_join(thread, NULL);
    wait_until_quiet(directory);
    return size;
}

/* Writes in a row are one change (on a busy machine a writer may be held up); writes without end do not keep it for ever. */
static void
test_writers_get_time(void)
{
    struct directory *directory = open_directory();
    struct writer many = {directory, 150, 10};
    pthread_t thread;
    bool is_grouped = false;
    for (int i = 0; i < 5 && !is_grouped; i++)
        is_grouped = grouped(directory) == 10;
    CHECK(is_grouped);
    CHECK(pthread_create(&thread, NULL, write_many, &many) == 0);
    int waited = waited_ms(directory, 30000);
    CHECK(waited < 1400); /* the writer takes 1500 */
    pthread_join(thread, NULL);
    directory_close(directory);
}

static void *
wake_later(void *context)
{
    const struct writer *writer = context;
    sleep_ms(writer->step_ms);
    directory_wake(writer->directory);
    return NULL;
}

static void
test_wake(void)
{
    struct directory *directory = open_directory();
    struct writer writer = {.directory = directory, .step_ms = 100};
    pthread_t thread;
    directory_wake(directory);
    directory_wake(directory);
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK(waited_ms(directory, 150) >= 150); /* both were meant for the one before */
    CHECK(pthread_create(&thread, NULL, wake_later, &writer) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    pthread_join(thread, NULL);
    directory_close(directory);
}

static void *
make_later(void *context)
{
    sleep_ms(*(int *)context);
    if (mkdir(path, 0700) != 0)
        abort();
    return NULL;
}

static void
test_comes_back_while_waiting(void)
{
    struct directory *directory = open_directory();
    pthread_t thread;
    int later_ms = 300;
    remove_below(path);
    wait_until_quiet(directory);
    CHECK(pthread_create(&thread, NULL, make_later, &later_ms) == 0);
    int waited = waited_ms(directory, 30000);
    CHECK(waited >= 290 && waited < 5000);
    pthread_join(thread, NULL);
    CHECK_TEXT(shown(directory), "");
    directory_close(directory);
}

/* The next descriptor is the last that the process gets. */
static void
leave_one_descriptor(struct rlimit *before)
{
    int next = dup(0);
    close(next);
    CHECK(getrlimit(RLIMIT_NOFILE, before) == 0);
    struct rlimit limit = {(rlim_t)next + 1, before->rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Without a watch time alone makes a wait return; as soon as there can be one, there is. */
static void
test_without_a_watch(void)
{
    struct rlimit before;
    directory_close(open_directory());
    leave_one_descriptor(&before);
    struct directory *directory = NULL;
    struct error *error AUTO(error_cleanup) = directory_open(path, &directory);
    CHECK(!error);
    CHECK(symlink("nowhere", in(path, "b.yaml")) == 0 && unlink(in(path, "b.yaml")) == 0);
    CHECK(waited_ms(directory, 150) >= 150);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(waited_ms(directory, 30000) < 5000);
    wait_until_quiet(directory);
    write_file(in(path, "a.yaml"), "1");
    CHECK(waited_ms(directory, 30000) < 5000);
    CHECK_TEXT(shown(directory), "a=1");
    directory_close(directory);
}

int
main(void)
{
    const char *tmp = getenv("SKYCAP_TMP");
    snprintf(base, sizeof base, "%s/skycap-directory-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(base))
        return 1;
    snprintf(path, sizeof path, "%s/d", base);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    test_open_refuses();
    test_names();
    test_twins();
    test_what_is_no_file();
    test_sizes_and_modes();
    test_unreadable();
    test_read_error();
    test_too_many();
    test_single_files();
    test_time_passes();
    test_changes();
    test_data_swap();
    test_replaced();
    test_removed();
    test_path_is_a_link();
    test_writers_get_time();
    test_wake();
    test_comes_back_while_waiting();
    test_without_a_watch();
    arena_clear(&arena);
    remove_below(base);
    return check_report("test_directory");
}
