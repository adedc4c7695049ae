/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine can do at best: one process writes 1 GiB in pieces of 64 KiB into a unix socket, another reads it.
 *
 *     bare-socket [PIECES [BYTES]]
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "throughput.h"

static void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static char *
make_piece(size_t size)
{
    char *piece = malloc(size);
    if (!piece)
        fail("malloc");
    return memset(piece, 'x', size);
}

/* The child's part. The descriptor is a blocking one, so a short write happens only when a signal comes. */
static void
write_pieces(int fd, size_t count, size_t size)
{
    const char *piece = make_piece(size);
    for (size_t i = 0; i < count; i++) {
        for (size_t done = 0; done < size;) {
            ssize_t n = write(fd, piece + done, size - done);
            if (n < 0)
                fail("write");
            done += (size_t)n;
        }
    }
}

static uint64_t
read_all(int fd, size_t size)
{
    char *piece = make_piece(size);
    uint64_t total = 0;
    ssize_t n;
    while ((n = read(fd, piece, size)) > 0)
        total += (uint64_t)n;
    if (n < 0)
        fail("read");
    free(piece);
    return total;
}

int
main(int count, char **arguments)
{
    size_t pieces = count > 1 ? strtoul(arguments[1], NULL, 10) : 16384;
    size_t size = count > 2 ? strtoul(arguments[2], NULL, 10) : 65536;
    int ends[2];
    int status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        fail("socketpair");
    double start = throughput_now();
    pid_t writer = fork();
    if (writer < 0)
        fail("fork");
    if (writer == 0) {
        close(ends[0]);
        write_pieces(ends[1], pieces, size);
        _exit(0);
    }
    close(ends[1]);
    uint64_t total = read_all(ends[0], size);
    double seconds = throughput_now() - start;
    if (waitpid(writer, &status, 0) != writer || status != 0 || total != (uint64_t)pieces * size) {
        fprintf(stderr, "bare-socket: the bytes did not all come\n");
        return 1;
    }
    throughput_print(total, seconds);
    return 0;
}
