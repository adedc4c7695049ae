/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting an image: see image_export.h. */
#include "exports/image_export.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define SAVE_MS 30000u
#define SAVE_BYTES (UINT64_C(256) << 20)

struct image_export {
    const struct image_export_options *options;
    struct image_writer writer;
    struct image_reader base;
    uint64_t next; /* the number of the next chunk */
    uint8_t *bytes;
    uint64_t bytes_read;
    uint64_t saved_ms, saved_bytes;
};

static struct error *
check(const struct image_export *export)
{
    const struct image_export_options *options = export->options;
    uint64_t done = export->next * IMAGE_CHUNK;
    if (options->progress->cancelled(options->progress->context))
        return error_new(CODE_CANCELLED, "the export was cancelled");
    options->progress->report(options->progress->context,
                              done < options->size ? done : options->size, options->size);
    return NULL;
}

static struct error *
save(struct image_export *export)
{
    const struct image_export_options *options = export->options;
    struct repository_id root;
    bool is_time = clock_now_ms() - export->saved_ms >= SAVE_MS ||
                   export->bytes_read - export->saved_bytes >= SAVE_BYTES;
    if (!options->save || !is_time)
        return NULL;
    struct error *error = image_writer_save(&export->writer, &root);
    if (!error)
        error = repository_writer_flush(options->chunks);
    if (!error)
        error = options->save(options->context, &root, export->next);
    export->saved_ms = clock_now_ms();
    export->saved_bytes = export->bytes_read;
    return error;
}

/* The chunks before `until` are those of the base, or zeros. */
static struct error *
skip_to(struct image_export *export, uint64_t until)
{
    struct error *error = NULL;
    for (; !error && export->next < until; export->next++) {
        struct repository_id id = {0};
        if (export->options->base && export->next < export->base.count)
            error = image_reader_get(&export->base, export->next, &id);
        if (!error)
            error = image_writer_add(&export->writer, &id);
    }
    return error ? error : check(export);
}

static struct error *
read_chunk(struct image_export *export)
{
    uint64_t offset = export->next * IMAGE_CHUNK, left = export->options->size - offset;
    size_t size = left < IMAGE_CHUNK ? (size_t)left : IMAGE_CHUNK;
    for (size_t have = 0; have < size;) {
        ssize_t got =
            pread(export->options->fd, export->bytes + have, size - have, (off_t)(offset + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_from_errno(errno, "read the image")
                           : error_new(CODE_ABORTED, "the image became shorter");
        have += (size_t)got;
    }
    memset(export->bytes + size, 0, IMAGE_CHUNK - size);
    export->bytes_read += size;
    return NULL;
}

static bool
is_zero(const uint8_t *bytes)
{
    return !bytes[0] && !memcmp(bytes, bytes + 1, IMAGE_CHUNK - 1);
}

static struct error *
export_chunk(struct image_export *export)
{
    struct repository_id id = {0};
    struct error *error = read_chunk(export);
    if (!error && !is_zero(export->bytes))
        error = repository_writer_put(export->options->chunks, export->bytes, IMAGE_CHUNK, &id);
    if (!error)
        error = image_writer_add(&export->writer, &id);
    if (error)
        return error;
    export->next++;
    error = check(export);
    return error ? error : save(export);
}

static struct error *
take_extent(void *context, const struct extent *extent)
{
    struct image_export *export = context;
    uint64_t size = export->options->size;
    if (extent->offset >= size || !extent->size)
        return NULL;
    uint64_t end = extent->size < size - extent->offset ? extent->offset + extent->size : size;
    struct error *error = skip_to(export, extent->offset / IMAGE_CHUNK);
    while (!error && export->next < image_chunk_count(end))
        error = export_chunk(export);
    return error;
}

static struct error *
begin(struct image_export *export)
{
    const struct image_export_options *options = export->options;
    bool is_there = false;
    struct error *error = NULL;
    if (options->base)
        error = image_reader_open(&export->base, options->repository, &options->base->root,
                                  options->base->size);
    if (!error && options->saved)
        error = image_writer_resume(&export->writer, options->repository, options->saved,
                                    options->saved_chunks, &is_there);
    if (is_there)
        export->next = options->saved_chunks;
    return error;
}

struct error *
image_export_run(const struct image_export_options *options, struct image_export_result *out)
{
    struct image_export export = {
        .options = options, .bytes = memory_map(IMAGE_CHUNK), .saved_ms = clock_now_ms()};
    image_writer_init(&export.writer, options->chunks);
    struct error *error = begin(&export);
    if (!error)
        error = options->extents(options->context, export.next * IMAGE_CHUNK,
                                 &(struct extent_sink){take_extent, &export});
    if (!error)
        error = skip_to(&export, image_chunk_count(options->size));
    if (!error)
        error = image_writer_save(&export.writer, &out->root);
    out->bytes_read = export.bytes_read;
    image_reader_close(&export.base);
    image_writer_clear(&export.writer);
    memory_unmap(export.bytes, IMAGE_CHUNK);
    return error;
}
