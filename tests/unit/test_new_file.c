/* SPDX-License-Identifier: Apache-2.0 */
/* Files appear whole, with their mode, and replace nothing unasked. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "check.h"

static char directory[] = "/tmp/test-new-file.XXXXXX";

static const char *
at(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static const char *
contents(const char *name)
{
    static char text[64];
    int fd = open(at(name), O_RDONLY);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size < 0 ? 0 : size] = '\0';
    return size < 0 ? NULL : text;
}

static int
count_files(void)
{
    int count = 0;
    DIR *open_directory = opendir(directory);
    while (readdir(open_directory))
        count++;
    closedir(open_directory);
    return count - 2;
}

static enum code
put(const char *name, mode_t mode, const char *text, bool replaces)
{
    struct new_file file AUTO(new_file_clear) = {0};
    struct error *error AUTO(error_cleanup) =
        new_file_write(&file, at(name), mode, text, strlen(text));
    if (!error)
        error = new_file_put(&file, replaces);
    return error ? error->code : CODE_OK;
}

static void
test_appears_with_its_mode(void)
{
    struct stat status;
    mode_t umask_before = umask(0);
    CHECK_NUMBER(put("secret", 0600, "one", false), CODE_OK);
    umask(0777);
    CHECK_NUMBER(put("open", 0644, "", false), CODE_OK);
    umask(umask_before);
    CHECK_TEXT(contents("secret"), "one");
    CHECK(stat(at("secret"), &status) == 0 && (status.st_mode & 07777) == 0600);
    CHECK(stat(at("open"), &status) == 0 && (status.st_mode & 07777) == 0644);
    CHECK_NUMBER(status.st_nlink, 1);
}

static void
test_replaces_only_when_asked(void)
{
    CHECK_NUMBER(put("secret", 0600, "two", false), CODE_ALREADY_EXISTS);
    CHECK_TEXT(contents("secret"), "one");
    CHECK_NUMBER(put("secret", 0600, "two", true), CODE_OK);
    CHECK_TEXT(contents("secret"), "two");
    CHECK_NUMBER(put("new", 0600, "first", true), CODE_OK);
    CHECK_TEXT(contents("new"), "first");
}

/* A link that leads elsewhere is a file that is there, and what it leads to is not written to. */
static void
test_links_are_not_followed(void)
{
    CHECK(symlink("elsewhere", at("link")) == 0);
    CHECK_NUMBER(put("link", 0600, "three", false), CODE_ALREADY_EXISTS);
    CHECK_NUMBER(put("link", 0600, "three", true), CODE_OK);
    CHECK_TEXT(contents("link"), "three");
    CHECK_TEXT(contents("elsewhere"), NULL);
}

static void
test_nothing_is_left_behind(void)
{
    int before = count_files();
    struct new_file file = {0};
    struct error *error = new_file_write(&file, at("never"), 0600, "four", 4);
    CHECK(!error);
    CHECK_NUMBER(count_files(), before + 1);
    new_file_clear(&file);
    CHECK_NUMBER(count_files(), before);
    CHECK_NUMBER(put("missing/file", 0600, "five", false), CODE_NOT_FOUND);
    CHECK_NUMBER(count_files(), before);
}

int
main(void)
{
    if (!mkdtemp(directory))
        return 1;
    test_appears_with_its_mode();
    test_replaces_only_when_asked();
    test_links_are_not_followed();
    test_nothing_is_left_behind();
    const char *const left[] = {"secret", "open", "new", "link"};
    for (size_t i = 0; i < COUNT_OF(left); i++)
        unlink(at(left[i]));
    rmdir(directory);
    return check_report("new_file");
}
