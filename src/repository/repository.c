/* SPDX-License-Identifier: Apache-2.0 */
/* Making, opening and closing a repository: see repository.h. */
#include "repository/repository.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "repository/bytes.h"
#include "repository/key_file.h"
#include "repository/repository_internal.h"

#define VERSION 1u
/* Version (4), id (32), chunker secret (32), time of creation in ms (8). */
#define CONFIG_BYTES 76u
#define MOST_THREADS 4u

/* There is one config, and its name is known. */
static const struct object_name config_name;

/* ---- keys ---- */

static struct error *
open_sealing(const char *key_file, struct sealing **out)
{
    uint8_t key[SEALING_KEY_BYTES];
    struct error *error = key_file ? key_file_read(key_file, key) : NULL;
    if (!error)
        error = sealing_new(key_file ? key : NULL, out);
    OPENSSL_cleanse(key, sizeof key);
    return error;
}

/* ---- making ---- */

static struct error *
check_absent(struct objects *objects)
{
    uint64_t size;
    struct error *error = objects_size(objects, OBJECT_CONFIG, &config_name, &size);
    if (!error)
        return error_new(CODE_ALREADY_EXISTS, "there is a repository already");
    return error_forgive(error, CODE_NOT_FOUND);
}

/* Somebody else may have made one at the same time. */
static struct error *
check_own(struct objects *objects, const struct buffer *object)
{
    struct buffer there AUTO(buffer_clear) = {0};
    uint64_t size = 0;
    struct error *error = objects_size(objects, OBJECT_CONFIG, &config_name, &size);
    if (!error && size == object->size)
        error = objects_get(objects, OBJECT_CONFIG, &config_name, 0, buffer_reserve(&there, size),
                            size);
    if (!error && (size != object->size || memcmp(there.bytes, object->bytes, size) != 0))
        error = error_new(CODE_ALREADY_EXISTS, "somebody else has just made a repository there");
    return error;
}

static struct error *
put_config(struct objects *objects, const struct sealing *sealing)
{
    uint8_t config[CONFIG_BYTES];
    struct buffer object AUTO(buffer_clear) = {0};
    bytes_set32(config, VERSION);
    bytes_set64(config + 68, (uint64_t)clock_unix_ms());
    struct error *error = sealing_random(config + 4, 64);
    if (!error)
        error = repository_seal(sealing, OBJECT_CONFIG, config, sizeof config, &object);
    if (!error)
        error = objects_put(objects, OBJECT_CONFIG, &config_name, object.bytes, object.size,
                            OBJECTS_NOW);
    if (!error)
        error = check_own(objects, &object);
    OPENSSL_cleanse(config, sizeof config);
    return error;
}

struct error *
repository_create(const struct repository_options *options)
{
    struct objects *objects = NULL;
    struct sealing *sealing = NULL;
    struct error *error = objects_open(options, true, &objects);
    if (!error)
        error = check_absent(objects);
    if (!error && options->key_file && access(options->key_file, F_OK) != 0)
        error = key_file_make(options->key_file);
    if (!error)
        error = open_sealing(options->key_file, &sealing);
    if (!error)
        error = put_config(objects, sealing);
    sealing_free(sealing);
    objects_close(objects);
    return error_wrap(error, "make the repository %s", options->url);
}

/* ---- opening ---- */

static struct error *
no_repository(struct error *error)
{
    error_free(error);
    return error_new(CODE_NOT_FOUND, "there is no repository: `skycap repository init` makes one");
}

/* What can be told before the config is opened. */
static struct error *
check_key_fits(struct repository *repository)
{
    uint8_t header[SEALING_HEADER_BYTES];
    struct error *error =
        objects_get(repository->objects, OBJECT_CONFIG, &config_name, 0, header, sizeof header);
    if (error && error->code == CODE_NOT_FOUND)
        return no_repository(error);
    if (error)
        return error;
    if (sealing_header_is_encrypted(header) && !sealing_encrypts(repository->sealing))
        return error_new(CODE_FAILED_PRECONDITION,
                         "the repository is encrypted: give the file with its key");
    if (header[9] == 0 && sealing_encrypts(repository->sealing))
        return error_new(CODE_FAILED_PRECONDITION,
                         "the repository is not encrypted: give no key file");
    return NULL;
}

static struct error *
read_config(struct repository *repository)
{
    struct buffer config AUTO(buffer_clear) = {0};
    struct repository_id id;
    struct error *error = check_key_fits(repository);
    if (error)
        return error;
    error = repository_load(repository, OBJECT_CONFIG, &config_name, &config);
    if (error && error->code == CODE_DATA_LOSS && sealing_encrypts(repository->sealing)) {
        error->code = CODE_FAILED_PRECONDITION;
        return error_wrap(error, "this key does not open the repository, or its config is damaged");
    }
    if (error)
        return error;
    if (config.size != CONFIG_BYTES || bytes_get32(config.bytes) != VERSION)
        return error_new(CODE_FAILED_PRECONDITION,
                         "the repository has a newer format: use a newer skycap");
    memcpy(id.bytes, config.bytes + 4, sizeof id.bytes);
    repository_id_print(&id, repository->id);
    memcpy(repository->chunker_secret, config.bytes + 36, sizeof repository->chunker_secret);
    OPENSSL_cleanse(config.bytes, config.size);
    return NULL;
}

struct error *
repository_probe(const struct repository_options *options)
{
    struct objects *objects = NULL;
    uint64_t size;
    struct error *error = objects_open(options, false, &objects);
    if (!error)
        error = objects_size(objects, OBJECT_CONFIG, &config_name, &size);
    objects_close(objects);
    if (error && error->code == CODE_UNAVAILABLE)
        return error;
    error_free(error);
    return NULL;
}

static unsigned
choose_threads(unsigned wanted)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted)
        return wanted;
    return cpus < 1 ? 1 : cpus > (long)MOST_THREADS ? MOST_THREADS : (unsigned)cpus;
}

struct error *
repository_open(const struct repository_options *options, struct repository **out)
{
    struct repository *repository AUTO(repository_cleanup) = memory_zeroed(sizeof *repository);
    repository->log = options->log;
    repository->roster = options->roster;
    repository->threads = choose_threads(options->threads);
    if (options->cache_directory)
        repository->cache_directory = memory_string(options->cache_directory);
    struct error *error = objects_open(options, false, &repository->objects);
    if (!error)
        error = open_sealing(options->key_file, &repository->sealing);
    if (!error)
        error = read_config(repository);
    if (!error)
        error = locations_open(options->cache_directory, repository->id, &repository->locations);
    if (!error)
        repository_open_records(repository);
    if (!error)
        error = repository_sync(repository);
    if (!error)
        *out = STEAL(repository);
    return error_wrap(error, "open the repository %s", options->url);
}

void
repository_close(struct repository *repository)
{
    if (!repository)
        return;
    locations_close(repository->locations);
    cache_db_close(repository->records);
    sealing_free(repository->sealing);
    objects_close(repository->objects);
    free(repository->cache_directory);
    OPENSSL_cleanse(repository, sizeof *repository);
    free(repository);
}

void
repository_cleanup(struct repository **repository)
{
    repository_close(*repository);
}

/* ---- small things ---- */

const uint8_t *
repository_chunker_secret(const struct repository *repository)
{
    return repository->chunker_secret;
}

const char *
repository_id_text(const struct repository *repository)
{
    return repository->id;
}

const char *
repository_work_directory(const struct repository *repository)
{
    return repository->cache_directory ? repository->cache_directory : "/tmp";
}

static struct error *
load_index(void *context, const struct object_name *name, struct buffer *index)
{
    return repository_load(context, OBJECT_INDEX, name, index);
}

/* A damaged index must not keep the rest from being read: its chunks are unknown. */
static struct error *
tolerate_damage(void *context, const struct object_name *name, struct error *error)
{
    struct repository *repository = context;
    (void)name;
    if (error->code != CODE_DATA_LOSS)
        return error;
    repository->has_damaged_index = true;
    if (repository->log)
        log_warn(repository->log,
                 "an index of the repository is damaged: run `skycap repository rebuild`",
                 LOG_TEXT("error", error->message));
    error_free(error);
    return NULL;
}

static struct locations_source
source_of(struct repository *repository)
{
    return (struct locations_source){.objects = repository->objects,
                                     .load = load_index,
                                     .tolerate = tolerate_damage,
                                     .context = repository};
}

struct error *
repository_sync(struct repository *repository)
{
    struct locations_source source = source_of(repository);
    repository->has_damaged_index = false;
    return locations_sync(repository->locations, &source);
}

struct error *
repository_sync_packs(struct repository *repository, const struct id_set *garbage, size_t *lost)
{
    struct locations_source source = source_of(repository);
    source.garbage = garbage;
    repository->has_damaged_index = false;
    struct error *error = locations_sync_packs(repository->locations, &source, lost);
    if (!error && *lost && repository->log)
        log_warn(repository->log,
                 "packs of the repository are missing: see `skycap snapshot verify`",
                 LOG_NUMBER("packs", *lost));
    return error;
}

struct error *
repository_check_cancel(const struct repository_progress *progress)
{
    bool is_cancelled =
        progress && progress->is_cancelled && progress->is_cancelled(progress->context);
    return is_cancelled ? error_new(CODE_CANCELLED, "cancelled") : NULL;
}

struct error *
repository_report(const struct repository_progress *progress, uint64_t done, uint64_t total)
{
    if (progress && progress->report)
        progress->report(done, total, progress->context);
    return repository_check_cancel(progress);
}
