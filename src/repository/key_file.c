/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a repository as a file: see key_file.h. */
#include "repository/key_file.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/files.h"
#include "base/new_file.h"

#define MOST_BYTES 128u

static const char start[] = "skycap-repository-key-1 ";

void
key_file_wipe(struct buffer *buffer)
{
    if (buffer->bytes)
        OPENSSL_cleanse(buffer->bytes, buffer->capacity);
    buffer_clear(buffer);
}

static bool
parse(const char *text, size_t size, uint8_t key[SEALING_KEY_BYTES])
{
    size_t before = strlen(start);
    struct buffer bytes AUTO(key_file_wipe) = {0};
    if (size && text[size - 1] == '\n')
        size--;
    if (size <= before || memcmp(text, start, before) != 0 ||
        !base64_decode(text + before, size - before, &bytes) || bytes.size != SEALING_KEY_BYTES)
        return false;
    memcpy(key, bytes.bytes, SEALING_KEY_BYTES);
    return true;
}

struct error *
key_file_check_private(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !(status.st_mode & 077))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "other users may open %s (mode %03o): run `chmod 600 %s`", path,
                     (unsigned)status.st_mode & 0777, path);
}

struct error *
key_file_read(const char *path, uint8_t key[SEALING_KEY_BYTES])
{
    struct buffer text AUTO(key_file_wipe) = {0};
    struct error *error = key_file_check_private(path);
    if (error)
        return error;
    error = files_read_all(path, MOST_BYTES, &text);
    if (error && error->code != CODE_OUT_OF_RANGE)
        return error_wrap(error, "the key of the repository");
    bool is_key = !error && parse((const char *)text.bytes, text.size, key);
    error_free(error);
    return is_key ? NULL
                  : error_new(CODE_INVALID_ARGUMENT,
                              "%s is no key file: it has one line, \"%sBASE64\"", path, start);
}

struct error *
key_file_make(const char *path)
{
    uint8_t key[SEALING_KEY_BYTES];
    struct buffer text AUTO(key_file_wipe) = {0};
    struct new_file file AUTO(new_file_clear) = {0};
    struct error *error = sealing_random(key, sizeof key);
    if (error)
        return error;
    buffer_append_text(&text, start);
    base64_encode(key, sizeof key, true, &text);
    buffer_append_byte(&text, '\n');
    OPENSSL_cleanse(key, sizeof key);
    error = new_file_write(&file, path, 0600, text.bytes, text.size);
    return error ? error : new_file_put(&file, false);
}
