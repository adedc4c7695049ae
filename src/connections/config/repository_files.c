/* SPDX-License-Identifier: Apache-2.0 */
/* Files about repositories: see repository_files.h. */
#include "connections/config/repository_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "connections/config/directory.h"
#include "connections/config/spec.h"
#include "connections/config/yaml.h"

#define MOST_DAYS 366u

/* A path in a file is beside that file unless it is absolute. */
static struct error *
read_path(const struct setting *map, const char *key, const char *directory, struct arena *arena,
          const char **out)
{
    struct error *error = settings_read_text(map, key, out);
    if (!error && *out && (*out)[0] != '/')
        *out = arena_print(arena, "%s/%s", directory, *out);
    return error;
}

/* A number of hours or days. */
static struct error *
read_every(const struct setting *drill, uint32_t *hours)
{
    const char *text = "";
    char *end = NULL;
    struct error *error = settings_read_text(drill, "every", &text);
    if (error)
        return error;
    unsigned long number = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    bool is_days = end && !strcmp(end, "d"), is_hours = end && !strcmp(end, "h");
    unsigned long most = is_days ? MOST_DAYS : is_hours ? MOST_DAYS * 24 : 0;
    if (!number || number > most)
        return settings_refuse_key(drill, "every", "give a time from 1h to 366d");
    *hours = (uint32_t)(is_days ? number * 24 : number);
    return NULL;
}

static struct error *
read_drill(const struct setting *map, struct repository_place *out)
{
    static const char *const known[] = {"every", "command", "timeout", NULL};
    const struct setting *drill = NULL;
    out->drill_command = "";
    struct error *error = settings_read_part(map, "drill", SETTING_MAP, &drill);
    if (error || !drill)
        return error;
    error = settings_check_keys(drill, known);
    if (!error)
        error = read_every(drill, &out->drill_hours);
    if (!error)
        error = settings_read_text(drill, "command", &out->drill_command);
    return error ? error : settings_read_time(drill, "timeout", &out->drill_timeout_ms);
}

static struct error *
read_map(const struct setting *map, const char *directory, struct arena *arena,
         struct repository_place *out)
{
    static const char *const known[] = {
        "url",    "key-file",   "encrypted", "credentials-file", "authorities-file",
        "region", "plain-http", "drill",     "shared",           NULL};
    struct repository_options *options = &out->options;
    bool is_encrypted = true;
    struct error *error = settings_check_keys(map, known);
    if (!error)
        error = settings_read_text(map, "url", &options->url);
    if (!error && !options->url)
        error = settings_refuse_key(map, "url",
                                    "is missing: file:///PATH, "
                                    "s3://HOST[:PORT]/BUCKET[/PREFIX], or node://NODE/NAME");
    if (!error)
        error = settings_read_flag(map, "encrypted", &is_encrypted);
    if (!error)
        error = read_path(map, "key-file", directory, arena, &options->key_file);
    if (!error && is_encrypted && !options->key_file)
        options->key_file = arena_print(arena, "%s/%s.key", directory, out->name);
    if (!error && !is_encrypted && options->key_file)
        error = settings_refuse_key(map, "key-file", "there is none if encrypted is false");
    if (!error)
        error = read_path(map, "credentials-file", directory, arena, &options->credentials_file);
    if (!error)
        error = read_path(map, "authorities-file", directory, arena, &options->authorities_file);
    if (!error)
        error = settings_read_text(map, "region", &options->region);
    if (!error)
        error = settings_read_flag(map, "plain-http", &options->uses_plain_http);
    if (!error)
        error = settings_read_flag(map, "shared", &out->is_shared);
    if (!error && out->is_shared && strncmp(options->url, "file:", 5) != 0)
        error = settings_refuse_key(map, "shared", "is only for file:///PATH");
    return error ? error : read_drill(map, out);
}

static struct error *
list(void *context, struct arena *arena, struct text_list *out)
{
    struct directory *directory = NULL;
    struct directory_files files;
    struct error *error = directory_open(context, &directory);
    if (!error)
        error = directory_read(directory, arena, &files);
    directory_close(directory);
    if (error)
        return error;
    out->items = arena_alloc(arena, files.count * sizeof *out->items);
    out->count = 0;
    for (size_t i = 0; i < files.count; i++)
        if (!out->count || strcmp(out->items[out->count - 1], files.items[i].name) != 0)
            out->items[out->count++] = files.items[i].name;
    return NULL;
}

static struct error *
not_found(void *context, const char *name, struct arena *arena)
{
    struct text_list names = {0};
    struct buffer text AUTO(buffer_clear) = {0};
    struct error *error = list(context, arena, &names);
    for (size_t i = 0; i < names.count && !error; i++)
        buffer_print(&text, "%s%s", i ? ", " : "", names.items[i]);
    if (error)
        return error;
    return error_new(CODE_NOT_FOUND, "there is no repository \"%s\": %s%s", name,
                     names.count ? "there are " : "write a file ",
                     names.count ? buffer_text(&text)
                                 : arena_print(arena, "%s/%s.yaml", (const char *)context, name));
}

static struct error *
find(void *context, const char *name, struct arena *arena, struct repository_place *out)
{
    const char *path = arena_print(arena, "%s/%s.yaml", (const char *)context, name);
    const struct setting *map;
    struct directory_file file;
    struct stat status;
    *out = (struct repository_place){.name = arena_string(arena, name)};
    struct error *error = spec_check_name(name);
    if (error)
        return error_wrap(error, "repository");
    if (stat(path, &status) != 0)
        return not_found(context, name, arena);
    directory_read_file(path, arena, &file);
    if (file.trouble)
        return error_new(CODE_FAILED_PRECONDITION, "%s: %s", path, file.trouble);
    error = yaml_read(file.text, file.size, arena, &map);
    if (!error)
        error = read_map(map, context, arena, out);
    if (error && error->code == CODE_INVALID_ARGUMENT)
        error->code = CODE_FAILED_PRECONDITION; /* the file is wrong, not the request */
    return error_wrap(error, "%s", path);
}

struct error *
repository_files_open(const char *directory, struct repository_places *out)
{
    struct directory *opened = NULL;
    struct error *error = directory_open(directory, &opened);
    directory_close(opened);
    *out = (struct repository_places){.find = find, .list = list, .context = (void *)directory};
    return error;
}
