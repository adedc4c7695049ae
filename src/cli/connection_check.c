/* SPDX-License-Identifier: Apache-2.0 */
/* skycap connection check: reads connection files as a server would. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/client.h"
#include "connections/config/directory.h"
#include "connections/config/spec_set.h"

struct verdict {
    const struct directory_file *file;
    const char *driver; /* NULL: the file is bad */
    unsigned line;      /* 0: unknown */
    const char *message;
};

static void
print_json(const struct verdict *verdict)
{
    struct buffer line AUTO(buffer_clear) = {0};
    buffer_print(&line, "{\"ok\":%s", verdict->driver ? "true" : "false");
    json_append_member(&line, "file", verdict->file->file);
    json_append_member(&line, "name", verdict->file->name);
    if (verdict->driver)
        json_append_member(&line, "driver", verdict->driver);
    if (verdict->line)
        buffer_print(&line, ",\"line\":%u", verdict->line);
    if (verdict->message)
        json_append_member(&line, "message", verdict->message);
    buffer_append_byte(&line, '}');
    puts(buffer_text(&line));
}

static void
print_text(const struct verdict *verdict)
{
    fflush(stdout); /* keeps stdout and stderr in order */
    if (verdict->driver)
        printf("%s: ok (driver %s)\n", verdict->file->file, verdict->driver);
    else if (verdict->line)
        fprintf(stderr, "%s:%u: %s\n", verdict->file->file, verdict->line, verdict->message);
    else
        fprintf(stderr, "%s: %s\n", verdict->file->file, verdict->message);
}

/* A file, and its content if it is good. */
struct checked_file {
    struct directory_file file;
    struct connection_spec *spec; /* NULL: the file is bad */
    struct error *error;          /* NULL: it is good, or see file.trouble */
};

struct checking {
    struct arena *arena;
    bool as_json;
    size_t count;
    size_t wrong;
};

static void
read_spec(struct checked_file *checked, struct arena *arena)
{
    const struct directory_file *file = &checked->file;
    if (!file->trouble)
        checked->error = spec_read(file->name, file->text, file->size, arena, &checked->spec);
}

/* Takes the file's error. */
static void
tell(struct checking *checking, struct checked_file *checked)
{
    struct error *error AUTO(error_cleanup) = STEAL(checked->error);
    struct verdict verdict = {.file = &checked->file, .message = checked->file.trouble};
    if (error)
        verdict.line = settings_line_of(error->message, &verdict.message);
    else if (checked->spec)
        verdict.driver = checked->spec->driver->name;
    if (checking->as_json)
        print_json(&verdict);
    else
        print_text(&verdict);
    checking->count++;
    checking->wrong += !verdict.driver;
}

static void
check_file(struct checking *checking, const char *path)
{
    struct checked_file checked = {0};
    directory_read_file(path, checking->arena, &checked.file);
    read_spec(&checked, checking->arena);
    tell(checking, &checked);
}

/* Files that are good each by itself may conflict. */
static void
check_together(struct checked_file *checked, size_t count, struct arena *arena)
{
    struct spec_set_file *files = arena_zeroed(arena, count * sizeof *files);
    for (size_t i = 0; i < count; i++)
        files[i] = (struct spec_set_file){.name = checked[i].file.name, .spec = checked[i].spec};
    for (size_t i = 0; i < count; i++)
        if (checked[i].spec)
            checked[i].error = spec_set_check(files, count, i, "");
}

static struct error *
check_directory(struct checking *checking, const char *path)
{
    struct arena *arena = checking->arena;
    struct directory *directory;
    struct directory_files files;
    struct error *error = directory_open(path, &directory);
    if (error)
        return error;
    error = directory_read(directory, arena, &files);
    directory_close(directory);
    if (error)
        return error;
    struct checked_file *checked = arena_zeroed(arena, files.count * sizeof *checked);
    for (size_t i = 0; i < files.count; i++) {
        checked[i].file = files.items[i];
        checked[i].file.file = arena_print(arena, "%s/%s", path, files.items[i].file);
        read_spec(&checked[i], arena);
    }
    check_together(checked, files.count, arena);
    for (size_t i = 0; i < files.count; i++)
        tell(checking, &checked[i]);
    return NULL;
}

static struct error *
check(struct client *client)
{
    struct checking checking = {.arena = &client->arena, .as_json = client->as_json};
    struct stat found;
    struct error *error = NULL;
    client->exit_code = EXIT_FAILED;
    for (int i = 0; i < client->word_count && !error; i++) {
        const char *path = client->words[i];
        if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
            error = check_directory(&checking, path);
        else
            check_file(&checking, path);
    }
    if (error || !checking.wrong)
        return error;
    return error_new(CODE_INVALID_ARGUMENT, "%zu of %zu files cannot be used", checking.wrong,
                     checking.count);
}

const struct command connection_check_command = {
    .name = "check",
    .summary = "check connection files",
    .words = "FILE|DIR...",
    .help = "Reads connection files as a server would, and reports what is wrong with them. For a "
            "directory, also\nreports files that conflict. The name of a connection is that of its "
            "file, without .yaml. Does not\nconnect to anything.",
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = check,
};
