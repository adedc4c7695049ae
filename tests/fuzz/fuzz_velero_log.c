/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a plugin writes to standard error, in whichever pieces: messages are bounded, and have no
 * control characters.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "require.h"
#include "velero/host_log.h"

static void
check_text(const char *text, size_t room)
{
    REQUIRE(strlen(text) < room);
    for (; *text; text++)
        REQUIRE((unsigned char)*text >= ' ' && *text != 0x7f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct host_log log; /* too large for the stack */
    char message[HOST_LOG_MESSAGE_BYTES];
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct log to = {.level = LOG_DEBUG, .fd = fd};
    size_t piece = size ? 1 + data[0] : 1;
    host_log_init(&log, &to, "plugin");
    for (size_t at = 0; at < size; at += piece)
        host_log_take(&log, data + at, size - at < piece ? size - at : piece);
    host_log_end(&log);
    check_text(log.last, sizeof log.last);
    host_log_parse((const char *)data, size, message);
    check_text(message, sizeof message);
    close(fd);
    return 0;
}
