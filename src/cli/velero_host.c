/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of skycap velero host share: see velero_host.h. */
#include "cli/velero_host.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/volume.h"
#include "message/message_bytes.h"
#include "message/message_json.h"

#define MAX_FILE_BYTES (2u << 20)
#define MAX_SECONDS 86400ul

static const char *plugin_directory = "/plugins";
static const char *plugin_name;
static struct text_list config_pairs;
static const char *config_file;
static bool uses_tls;
static unsigned long start_timeout_s = 60;
static unsigned long call_timeout_s = 600;
static const char *log_level = "warn";

const struct option velero_host_flags[] = {
    {"plugin-dir", 0, "DIR", OPTION_TEXT, &plugin_directory,
     "the directory of the plugins; default /plugins"},
    {"plugin", 0, "NAME", OPTION_TEXT, &plugin_name,
     "the volume snapshotter to use; default: the only one there is"},
    {"config", 0, "KEY=VALUE", OPTION_LIST, &config_pairs,
     "a setting for the plugin; may be given several times"},
    {"config-file", 0, "FILE", OPTION_TEXT, &config_file,
     "settings for the plugin, a line KEY=VALUE for each"},
    {"mtls", 0, NULL, OPTION_FLAG, &uses_tls,
     "mutual TLS with the plugins, which have to support it; Velero does without"},
    {"start-timeout", 0, "SECONDS", OPTION_NUMBER, &start_timeout_s,
     "time for a plugin to start; default 60"},
    {"call-timeout", 0, "SECONDS", OPTION_NUMBER, &call_timeout_s,
     "time for a plugin to answer a call; default 600"},
    {"log-level", 0, "LEVEL", OPTION_TEXT, &log_level,
     "debug, info, warn or error, also for what plugins log; default warn"},
    {0},
};

/* ---- signals ---- */

static volatile sig_atomic_t is_interrupted;

static void
note_signal(int number)
{
    static const char message[] = "\nskycap: cancelling (once more: give up at once)\n";
    (void)number;
    is_interrupted = 1;
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, message, sizeof message - 1) < 0)
        return;
}

void
velero_host_note_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool
velero_host_is_interrupted(void)
{
    return is_interrupted;
}

/* ---- settings ---- */

static struct error *
read_stream(FILE *stream, struct buffer *out)
{
    size_t got;
    do {
        got = fread(buffer_reserve(out, 65536), 1, 65536, stream);
        out->size += got;
        if (out->size > MAX_FILE_BYTES)
            return error_new(CODE_OUT_OF_RANGE, "it is larger than %u bytes", MAX_FILE_BYTES);
    } while (got);
    return ferror(stream) ? error_from_errno(errno, "read it") : NULL;
}

struct error *
velero_host_read_file(const char *path, struct arena *arena, const char **out)
{
    struct buffer text AUTO(buffer_clear) = {0};
    bool is_input = strcmp(path, "-") == 0;
    FILE *stream = is_input ? stdin : fopen(path, "re");
    if (!stream)
        return error_from_errno(errno, "open %s", path);
    struct error *error = read_stream(stream, &text);
    if (!is_input)
        fclose(stream);
    if (!error && text.size && memchr(text.bytes, '\0', text.size))
        error = error_new(CODE_INVALID_ARGUMENT, "it is not a text");
    if (error)
        return error_wrap(error, "%s", is_input ? "standard input" : path);
    *out = arena_copy(arena, text.bytes, text.size);
    return NULL;
}

/* Errors do not quote the lines: they may have passwords. */
static struct error *
read_config_file(const char *path, struct arena *arena, struct text_map *out)
{
    const char *text = "";
    struct error *error = velero_host_read_file(path, arena, &text);
    if (error)
        return error_wrap(error, "--config-file");
    unsigned number = 1;
    for (const char *line = text; *line; number++) {
        size_t size = strcspn(line, "\n");
        char *pair = arena_copy(arena, line, size);
        char *equals = strchr(pair, '=');
        if (equals && pair[0] != '#') {
            *equals = '\0';
            text_map_set(out, arena, pair, equals + 1);
        } else if (pair[0] && pair[0] != '#') {
            return error_new(CODE_INVALID_ARGUMENT, "%s, line %u: write it as KEY=VALUE", path,
                             number);
        }
        line += size + (line[size] ? 1 : 0);
    }
    return NULL;
}

static struct error *
read_config(struct velero_host *host)
{
    struct arena *arena = &host->client->arena;
    struct error *error = NULL;
    if (config_file)
        error = read_config_file(config_file, arena, &host->config);
    for (size_t i = 0; i < config_pairs.count && !error; i++)
        error = volume_read_pair(config_pairs.items[i], "--config", arena, &host->config);
    return error;
}

static struct error *
check_seconds(const char *flag, unsigned long seconds)
{
    if (seconds && seconds <= MAX_SECONDS)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%s: give it 1 to %lu seconds", flag, MAX_SECONDS);
}

/* ---- opening ---- */

struct error *
velero_host_open(struct velero_host *host, struct client *client)
{
    *host = (struct velero_host){.client = client, .log = {.fd = STDERR_FILENO}};
    struct error *error = error_wrap(log_parse_level(log_level, &host->log.level), "--log-level");
    if (!error)
        error = check_seconds("--start-timeout", start_timeout_s);
    if (!error)
        error = check_seconds("--call-timeout", call_timeout_s);
    if (!error)
        error = read_config(host);
    if (!error)
        error = client_open_channel(client); /* for its runtime */
    if (error)
        return error;
    struct host_options options = {
        .plugin_directory = plugin_directory,
        .uses_tls = uses_tls,
        .start_timeout_ms = (uint32_t)start_timeout_s * 1000,
        .call_timeout_ms = (uint32_t)call_timeout_s * 1000,
        .runtime = client->runtime,
        .log = &host->log,
    };
    error = host_open(&options, &host->host);
    return error ? error : host_discover(host->host);
}

struct error *
velero_host_start(struct velero_host *host, const char *name)
{
    struct error *error =
        host_find_snapshotter(host->host, plugin_name ? plugin_name : name, &host->plugin);
    if (!error && is_interrupted)
        error = error_new(CODE_CANCELLED, "interrupted before anything was begun");
    host->client->exit_code = EXIT_FAILED;
    return error
               ? error
               : host_snapshotter_open(host->host, host->plugin, &host->config, &host->snapshotter);
}

void
velero_host_close(struct velero_host *host)
{
    host_snapshotter_close(host->snapshotter);
    host_close(host->host);
}

/* ---- snapshots as files ---- */

struct error *
velero_host_read_snapshot(const char *word, struct arena *arena, Skycap__V1__HostSnapshot **out)
{
    const char *text = "";
    ProtobufCMessage *parsed = NULL;
    *out = arena_alloc(arena, sizeof **out);
    skycap__v1__host_snapshot__init(*out);
    (*out)->snapshot_id = (char *)word;
    if (word[0] != '@')
        return NULL;
    struct error *error = velero_host_read_file(word + 1, arena, &text);
    if (!error)
        error = message_json_parse(text, strlen(text), &skycap__v1__host_snapshot__descriptor, NULL,
                                   &parsed);
    if (error)
        return error_wrap(error, "read the snapshot %s", word + 1);
    *out = message_bytes_copy(parsed, arena);
    protobuf_c_message_free_unpacked(parsed, NULL);
    if (!(*out)->snapshot_id[0])
        error = error_new(CODE_INVALID_ARGUMENT, "%s has no snapshotId", word + 1);
    return error;
}
