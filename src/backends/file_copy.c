/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying files: see file_copy.h. Tries, in this order: one FICLONE for the whole file;
 * copy_file_range, which works in the kernel, for each range of data; reading and writing.
 */
#include "backends/file_copy.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

/* How much is copied between two checks for cancellation. */
#define CHUNK_BYTES (8u << 20)
#define BUFFER_BYTES (256u << 10)
/* How much is copied between two saves of the position, each of which waits for the disk. */
#define SAVE_BYTES (UINT64_C(256) << 20)
#define SAVE_MS 5000u

struct error *
copy_job_advance(struct copy_job *job, uint64_t bytes)
{
    const struct progress *progress = job->progress;
    job->done_bytes += bytes;
    if (job->total_bytes < job->done_bytes)
        job->total_bytes = job->done_bytes;
    if (!progress)
        return NULL;
    if (progress->report)
        progress->report(progress->context, job->done_bytes, job->total_bytes);
    if (progress->cancelled && progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "the copy was cancelled after %llu bytes",
                         (unsigned long long)job->done_bytes);
    return NULL;
}

/*
 * Whether the file is done. If this pair of files cannot share extents, others may; if the file
 * systems cannot, none can.
 */
static bool
share(struct copy_job *job, int from, int to)
{
    if (job->cannot_share)
        return false;
    if (ioctl(to, FICLONE, from) == 0)
        return true;
    if (errno == EOPNOTSUPP || errno == ENOTTY || errno == EXDEV || errno == ENOSYS)
        job->cannot_share = true;
    return false;
}

static ssize_t
write_fully(int to, const char *bytes, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = pwrite(to, bytes + done, size - done, offset + (off_t)done);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0)
            done += (size_t)written;
    }
    return (ssize_t)size;
}

/* Returns how many bytes were copied; 0 at the end of the source, -1 with errno. */
static ssize_t
copy_by_hand(int from, int to, off_t offset, size_t size)
{
    char *bytes AUTO(memory_cleanup) = memory_new(BUFFER_BYTES);
    ssize_t got = pread(from, bytes, size < BUFFER_BYTES ? size : BUFFER_BYTES, offset);
    return got <= 0 ? got : write_fully(to, bytes, (size_t)got, offset);
}

static ssize_t
copy_some(int from, int to, off_t offset, size_t size)
{
    off_t in = offset, out = offset;
    ssize_t copied = copy_file_range(from, &in, to, &out, size, 0);
    bool is_refused = copied < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP ||
                                     errno == ENOSYS || errno == EBADF);
    return is_refused ? copy_by_hand(from, to, offset, size) : copied;
}

/* The data first: after a power failure the position must not be ahead of it. */
static struct error *
save_if_due(struct copy_job *job, int to, off_t offset)
{
    struct copy_position *position = job->position;
    if (!position)
        return NULL;
    uint64_t save_bytes = job->progress->save_bytes ? job->progress->save_bytes : SAVE_BYTES;
    if ((uint64_t)offset - position->offset < save_bytes &&
        clock_now_ms() - job->saved_ms < SAVE_MS)
        return NULL;
    if (fsync(to) != 0)
        return error_from_errno(errno, "make a part of the copy durable");
    position->offset = (uint64_t)offset;
    position->done_bytes = job->done_bytes;
    job->saved_ms = clock_now_ms();
    return job->progress->save(job->progress->context, position);
}

static struct error *
copy_run(struct copy_job *job, int from, int to, off_t start, off_t end)
{
    while (start < end) {
        size_t size = (size_t)(end - start) < CHUNK_BYTES ? (size_t)(end - start) : CHUNK_BYTES;
        ssize_t copied = copy_some(from, to, start, size);
        if (copied < 0 && errno != EINTR)
            return error_from_errno(errno, "copy %zu bytes at %lld", size, (long long)start);
        if (copied == 0)
            return NULL; /* the source has become shorter meanwhile */
        start += copied > 0 ? copied : 0;
        struct error *error = copy_job_advance(job, copied > 0 ? (uint64_t)copied : 0);
        if (!error)
            error = save_if_due(job, to, start);
        if (error)
            return error;
    }
    return NULL;
}

/*
 * The next range of data from `offset` on; false if there is none. If the file system cannot report
 * holes, everything is data.
 */
static bool
find_run(int from, off_t offset, off_t size, off_t *start, off_t *end)
{
    *start = lseek(from, offset, SEEK_DATA);
    if (*start < 0 && errno == ENXIO)
        return false;
    if (*start < 0)
        *start = offset;
    *end = lseek(from, *start, SEEK_HOLE);
    if (*end < 0 || *end > size)
        *end = size;
    return *start < *end;
}

struct error *
file_copy(struct copy_job *job, int from, int to)
{
    struct stat status;
    if (fstat(from, &status) != 0)
        return error_from_errno(errno, "look at the source");
    if (status.st_size == 0)
        return copy_job_advance(job, 0);
    if (share(job, from, to))
        return copy_job_advance(job, (uint64_t)status.st_blocks * 512);
    if (ftruncate(to, status.st_size) != 0)
        return error_from_errno(errno, "set the size of the copy to %lld bytes",
                                (long long)status.st_size);
    uint64_t expected = job->done_bytes + (uint64_t)status.st_blocks * 512;
    off_t start, end = job->position ? (off_t)job->position->offset : 0;
    struct error *error = end ? copy_job_advance(job, job->position->done_bytes) : NULL;
    while (!error && find_run(from, end, status.st_size, &start, &end))
        error = copy_run(job, from, to, start, end);
    /* The total counts the space that files occupy, so the rest of the last block is done too. */
    if (!error && job->done_bytes < expected)
        error = copy_job_advance(job, expected - job->done_bytes);
    return error;
}
