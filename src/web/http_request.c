/* SPDX-License-Identifier: Apache-2.0 */
/* Parses HTTP/1 requests: see http_request.h. */
#include "web/http_request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_LENGTH_DIGITS 10

static struct error *
refuse(const char *why)
{
    return error_new(CODE_INVALID_ARGUMENT, "the request is wrong: %s", why);
}

size_t
http_request_head_size(const char *bytes, size_t size)
{
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    return end ? (size_t)(end - bytes) + 4 : 0;
}

/* ---- characters ---- */

/* Characters of methods and names of fields: RFC 9110, 5.6.2. */
static bool
is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t
token_size(const char *text)
{
    size_t size = 0;
    while (is_token(text[size]))
        size++;
    return size;
}

static bool
is_printable(char c)
{
    return c > ' ' && c < 0x7f;
}

/* ---- the first line ---- */

static enum http_method
read_method(const char *text, size_t size)
{
    static const struct {
        const char *name;
        enum http_method method;
    } methods[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_HEAD}, {"POST", HTTP_POST}};
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (strlen(methods[i].name) == size && memcmp(methods[i].name, text, size) == 0)
            return methods[i].method;
    return HTTP_OTHER;
}

/* The target must be a path: no proxy uses this server, so that an absolute URL is a mistake. */
static struct error *
read_target(char *target, struct http_request *out)
{
    size_t size = 0;
    while (is_printable(target[size]) && target[size] != '#')
        size++;
    if (target[0] != '/' || target[size] != '\0')
        return refuse("the target is not a path");
    char *question = strchr(target, '?');
    out->path = target;
    out->query = "";
    if (question) {
        *question = '\0';
        out->query = question + 1;
    }
    return NULL;
}

static struct error *
read_first_line(char *line, struct http_request *out)
{
    size_t size = token_size(line);
    char *target = line + size + 1;
    if (!size || line[size] != ' ')
        return refuse("it does not begin with a method");
    char *end = strchr(target, ' ');
    if (!end)
        return refuse("it has no version");
    *end = '\0';
    if (strcmp(end + 1, "HTTP/1.1") != 0 && strcmp(end + 1, "HTTP/1.0") != 0)
        return refuse("the version is neither HTTP/1.0 nor HTTP/1.1");
    out->minor = end[8] == '1';
    out->method = read_method(line, size);
    return read_target(target, out);
}

/* ---- fields ---- */

static struct error *
read_length(const char *text, size_t *out)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits])
        return refuse("Content-Length is not a number");
    if (digits > MAX_LENGTH_DIGITS || strtoull(text, NULL, 10) > HTTP_REQUEST_MAX_BODY)
        return error_new(CODE_OUT_OF_RANGE, "the body is larger than %u bytes",
                         HTTP_REQUEST_MAX_BODY);
    *out = (size_t)strtoull(text, NULL, 10);
    return NULL;
}

/* A field that must not come twice. */
static struct error *
set_once(const char **place, const char *value)
{
    if (*place)
        return refuse("a field is there twice");
    *place = value;
    return NULL;
}

struct fields {
    struct http_request *request;
    const char *length;
    size_t count;
};

static struct error *
take_field(struct fields *fields, const char *name, const char *value)
{
    struct http_request *request = fields->request;
    const struct {
        const char *name;
        const char **place;
    } known[] = {
        {"Host", &request->host},
        {"Origin", &request->origin},
        {"Sec-Fetch-Site", &request->fetch_site},
        {"Content-Type", &request->content_type},
        {"Authorization", &request->authorization},
        {"If-None-Match", &request->if_none_match},
        {"Content-Length", &fields->length},
    };
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        return error_new(CODE_UNIMPLEMENTED, "Transfer-Encoding is not supported: send a "
                                             "Content-Length");
    if (strcasecmp(name, "Accept-Encoding") == 0) /* a list, which may be in several fields */
        request->accept_encoding = value;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strcasecmp(name, known[i].name) == 0)
            return set_once(known[i].place, value);
    return NULL;
}

/* Cuts blanks at both ends. False: a control character. */
static bool
trim(char **value)
{
    char *text = *value + strspn(*value, " \t");
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return false;
    while (size && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        text[--size] = '\0';
    *value = text;
    return true;
}

static struct error *
read_field(struct fields *fields, char *line)
{
    size_t size = token_size(line);
    char *value = line + size + 1;
    if (!size || line[size] != ':')
        return refuse("a line is not a field");
    if (++fields->count > HTTP_REQUEST_MAX_FIELDS)
        return refuse("it has too many fields");
    line[size] = '\0';
    if (!trim(&value))
        return refuse("a field has control characters");
    return take_field(fields, line, value);
}

/* ---- the whole ---- */

/* Ends the line that begins here, and returns the next one; NULL: the line end is wrong. */
static char *
cut_line(char *line)
{
    char *end = strchr(line, '\r');
    if (!end || end[1] != '\n' || memchr(line, '\n', (size_t)(end - line)))
        return NULL;
    *end = '\0';
    return end + 2;
}

static struct error *
read_fields(char *line, struct fields *fields)
{
    while (line[0]) {
        char *next = cut_line(line);
        struct error *error = next ? read_field(fields, line) : refuse("a line has a wrong end");
        if (error)
            return error;
        line = next;
    }
    return NULL;
}

static struct error *
parse_lines(char *lines, struct http_request *out)
{
    struct fields fields = {out, NULL, 0};
    char *next = cut_line(lines);
    struct error *error = next ? read_first_line(lines, out) : refuse("a line has a wrong end");
    if (!error)
        error = read_fields(next, &fields);
    if (!error && fields.length)
        error = read_length(fields.length, &out->body_size);
    if (!error && out->minor && !out->host)
        error = refuse("it has no Host");
    if (!error && out->method != HTTP_POST && out->method != HTTP_OTHER && out->body_size)
        error = refuse("only POST may have a body");
    return error;
}

struct error *
http_request_parse(char *bytes, size_t size, struct http_request *out)
{
    *out = (struct http_request){.query = ""};
    if (size < 4 || size > HTTP_REQUEST_MAX_HEAD || memcmp(bytes + size - 4, "\r\n\r\n", 4) != 0)
        return refuse("its head is not complete");
    if (memchr(bytes, '\0', size))
        return refuse("it has control characters");
    bytes[size - 2] = '\0'; /* the empty line */
    return parse_lines(bytes, out);
}

/* ---- the query ---- */

static int
hex_digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *found = c ? strchr(digits, c) : NULL;
    return found ? (int)((found - digits) % 16) : -1;
}

/* Decodes %XX and +. NULL: the encoding is wrong, or there is a control character. */
static char *
decode(const char *text, size_t size, struct arena *arena)
{
    char *out = arena_alloc(arena, size + 1), *next = out;
    for (size_t i = 0; i < size; i++) {
        int c = text[i] == '+' ? ' ' : (unsigned char)text[i];
        if (text[i] == '%') {
            int high = size - i > 2 ? hex_digit(text[i + 1]) : -1;
            int low = high < 0 ? -1 : hex_digit(text[i + 2]);
            if (low < 0)
                return NULL;
            c = high * 16 + low;
            i += 2;
        }
        if (c < ' ' || c == 0x7f)
            return NULL;
        *next++ = (char)c;
    }
    *next = '\0';
    return out;
}

struct error *
http_request_parameter(const struct http_request *request, const char *name, struct arena *arena,
                       const char **out)
{
    size_t name_size = strlen(name);
    *out = "";
    for (const char *at = request->query; at[0];) {
        size_t size = strcspn(at, "&");
        if (size > name_size && at[name_size] == '=' && strncmp(at, name, name_size) == 0) {
            *out = decode(at + name_size + 1, size - name_size - 1, arena);
            return *out ? NULL : refuse("a parameter is not encoded as it must be");
        }
        at += size + (at[size] == '&');
    }
    return NULL;
}

/* "gzip;q=0" refuses it; other weights do not matter. */
bool
http_request_accepts_gzip(const struct http_request *request)
{
    for (const char *at = request->accept_encoding; at && at[0];) {
        at += strspn(at, " \t,");
        size_t size = strcspn(at, ","), word = strcspn(at, " \t;,");
        if (word == 4 && strncasecmp(at, "gzip", 4) == 0)
            return !memmem(at, size, "q=0", 3) || memmem(at, size, "q=0.", 4);
        at += size;
    }
    return false;
}
