/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of HTTP/1.1 servers: see http_reply.h. */
#include "repository/http_reply.h"

#include <string.h>
#include <strings.h>
#include <time.h>

static struct error *
refuse(const char *what)
{
    return error_new(CODE_UNAVAILABLE, "the server's reply cannot be understood: %s", what);
}

/* ---- the head ---- */

/* A line of the head without its end; `*next` is behind it. */
struct line {
    const char *text;
    size_t size;
};

static bool
next_line(const char **at, const char *end, struct line *out)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop)
        return false;
    out->text = *at;
    out->size = (size_t)(stop - *at);
    if (out->size && out->text[out->size - 1] == '\r')
        out->size--;
    *at = stop + 1;
    return true;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK", also without the words. */
static struct error *
parse_status(const struct line *line, struct http_reply *reply)
{
    const char *text = line->text;
    if (line->size < 12 || memcmp(text, "HTTP/1.", 7) != 0 || (text[7] != '0' && text[7] != '1') ||
        text[8] != ' ' || !is_digit(text[9]) || !is_digit(text[10]) || !is_digit(text[11]) ||
        (line->size > 12 && text[12] != ' '))
        return refuse("its first line");
    reply->status = (unsigned)((text[9] - '0') * 100 + (text[10] - '0') * 10 + text[11] - '0');
    reply->closes = text[7] == '0';
    return NULL;
}

static bool
has_name(const struct line *line, const char *name, struct line *value)
{
    size_t size = strlen(name);
    if (line->size <= size || line->text[size] != ':' || strncasecmp(line->text, name, size) != 0)
        return false;
    value->text = line->text + size + 1;
    value->size = line->size - size - 1;
    while (value->size && (*value->text == ' ' || *value->text == '\t')) {
        value->text++;
        value->size--;
    }
    while (value->size &&
           (value->text[value->size - 1] == ' ' || value->text[value->size - 1] == '\t'))
        value->size--;
    return true;
}

static bool
is_word(const struct line *value, const char *word)
{
    return value->size == strlen(word) && !strncasecmp(value->text, word, value->size);
}

static struct error *
parse_length(const struct line *value, struct http_reply *reply)
{
    uint64_t length = 0;
    if (!value->size || value->size > 18)
        return refuse("its length");
    for (size_t i = 0; i < value->size; i++) {
        if (!is_digit(value->text[i]))
            return refuse("its length");
        length = length * 10 + (uint64_t)(value->text[i] - '0');
    }
    if (reply->has_length && reply->length != length)
        return refuse("it has two lengths");
    reply->has_length = true;
    reply->length = length;
    return NULL;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT". Others are no error: who needs the time does without. */
static int64_t
parse_date(const struct line *value)
{
    struct tm parts = {0};
    char text[32];
    if (value->size >= sizeof text)
        return 0;
    memcpy(text, value->text, value->size);
    text[value->size] = 0;
    const char *end = strptime(text, "%a, %d %b %Y %T GMT", &parts);
    return end && !*end ? (int64_t)timegm(&parts) : 0;
}

static struct error *
parse_field(const struct line *line, struct http_reply *reply)
{
    struct line value;
    if (!line->size || line->text[0] == ' ' || line->text[0] == '\t' || line->text[0] == ':' ||
        !memchr(line->text, ':', line->size) || memchr(line->text, 0, line->size))
        return refuse("a line of its head");
    if (has_name(line, "content-length", &value))
        return parse_length(&value, reply);
    if (has_name(line, "transfer-encoding", &value)) {
        if (!is_word(&value, "chunked") || reply->is_chunked)
            return refuse("its encoding");
        reply->is_chunked = true;
    }
    if (has_name(line, "date", &value))
        reply->date = parse_date(&value);
    if (has_name(line, "last-modified", &value))
        reply->modified = parse_date(&value);
    if (has_name(line, "connection", &value) && is_word(&value, "close"))
        reply->closes = true;
    return NULL;
}

static struct error *
parse_head(const char *at, const char *end, struct http_reply *reply)
{
    struct line line = {0};
    bool has_line = next_line(&at, end, &line);
    struct error *error = has_line ? parse_status(&line, reply) : refuse("its first line");
    while (!error && next_line(&at, end, &line) && line.size)
        error = parse_field(&line, reply);
    if (!error && reply->is_chunked && reply->has_length)
        error = refuse("it has a length and chunks");
    return error;
}

/* The size of the head with its empty line; 0: it is not complete. */
static size_t
find_end(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (bytes[i] == '\n' && (bytes[i + 1] == '\n' ||
                                 (bytes[i + 1] == '\r' && i + 2 < size && bytes[i + 2] == '\n')))
            return bytes[i + 1] == '\n' ? i + 2 : i + 3;
    return 0;
}

struct error *
http_reply_parse(const uint8_t *bytes, size_t size, struct http_reply *reply, size_t *used)
{
    *reply = (struct http_reply){0};
    *used = find_end(bytes, size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX);
    if (!*used)
        return size >= HTTP_HEAD_MAX ? refuse("its head is too long") : NULL;
    return parse_head((const char *)bytes, (const char *)bytes + *used, reply);
}

/* ---- chunked bodies ---- */

static int
hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct error *
end_size_line(struct http_chunked *chunked)
{
    if (!chunked->digits)
        return refuse("the size of a chunk");
    chunked->state = chunked->left ? HTTP_CHUNK_DATA : HTTP_CHUNK_TRAILER;
    chunked->line = 0;
    return NULL;
}

/* A character of anything but data. */
static struct error *
take_character(struct http_chunked *chunked, uint8_t c)
{
    int digit = hex_value(c);
    if (++chunked->extra > HTTP_HEAD_MAX)
        return refuse("too much stands between its chunks");
    switch (chunked->state) {
    case HTTP_CHUNK_SIZE:
        if (digit >= 0 && chunked->digits < 8) {
            chunked->left = chunked->left * 16 + (uint64_t)digit;
            chunked->digits++;
            return NULL;
        }
        if (c == '\n')
            return end_size_line(chunked);
        if (c != '\r' && c != ';' && c != ' ')
            return refuse("the size of a chunk");
        chunked->state = HTTP_CHUNK_REST;
        return NULL;
    case HTTP_CHUNK_REST:
        return c == '\n' ? end_size_line(chunked) : NULL;
    case HTTP_CHUNK_END:
        if (c == '\r' && !chunked->line++)
            return NULL;
        if (c != '\n')
            return refuse("the end of a chunk");
        *chunked = (struct http_chunked){.extra = 0};
        return NULL;
    default: /* the trailer: lines up to an empty one */
        if (c == '\n' && !chunked->line)
            chunked->state = HTTP_CHUNK_DONE;
        chunked->line = c == '\n' ? 0 : chunked->line + (c != '\r');
        return NULL;
    }
}

struct error *
http_chunked_take(struct http_chunked *chunked, const uint8_t *bytes, size_t size, size_t limit,
                  struct buffer *body, size_t *used)
{
    struct error *error = NULL;
    *used = 0;
    while (!error && *used < size && chunked->state != HTTP_CHUNK_DONE) {
        if (chunked->state != HTTP_CHUNK_DATA) {
            error = take_character(chunked, bytes[(*used)++]);
            continue;
        }
        size_t part = size - *used < chunked->left ? size - *used : (size_t)chunked->left;
        if (body->size + part > limit)
            return refuse("its body is too long");
        buffer_append(body, bytes + *used, part);
        *used += part;
        chunked->left -= part;
        if (!chunked->left) {
            chunked->state = HTTP_CHUNK_END;
            chunked->line = 0;
        }
    }
    return error;
}
