/* SPDX-License-Identifier: Apache-2.0 */
/* Text formats of gRPC: see grpc_text.h. */
#include "rpc/grpc/grpc_text.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define TIMEOUT_MAX_DIGITS 8
#define TIMEOUT_MAX_VALUE 99999999u

/* Finest unit first. */
static const struct {
    char letter;
    uint64_t nanoseconds;
} units[] = {
    {'n', 1},
    {'u', 1000},
    {'m', 1000000},
    {'S', UINT64_C(1000000000)},
    {'M', UINT64_C(60000000000)},
    {'H', UINT64_C(3600000000000)},
};

bool
grpc_text_parse_timeout(const char *text, size_t size, uint64_t *nanoseconds)
{
    uint64_t value = 0;
    if (size < 2 || size > TIMEOUT_MAX_DIGITS + 1)
        return false;
    for (size_t i = 0; i < size - 1; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (units[i].letter != text[size - 1])
            continue;
        if (__builtin_mul_overflow(value, units[i].nanoseconds, nanoseconds))
            *nanoseconds = UINT64_MAX;
        return true;
    }
    return false;
}

static uint64_t
divide_rounding_up(uint64_t value, uint64_t divisor)
{
    return value / divisor + (value % divisor != 0);
}

/* Runs once per call; snprintf takes ten times as long. */
static size_t
print_number_with_unit(uint64_t number, char letter, char out[16])
{
    char digits[TIMEOUT_MAX_DIGITS];
    size_t count = 0;
    for (; number; number /= 10)
        digits[count++] = (char)('0' + number % 10);
    for (size_t i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    out[count] = letter;
    out[count + 1] = '\0';
    return count + 1;
}

size_t
grpc_text_print_timeout(uint64_t nanoseconds, char out[16])
{
    size_t i = 0;
    if (!nanoseconds)
        nanoseconds = 1;
    /* The last unit always fits: 64 bits of nanoseconds are five million hours. */
    while (divide_rounding_up(nanoseconds, units[i].nanoseconds) > TIMEOUT_MAX_VALUE)
        i++;
    return print_number_with_unit(divide_rounding_up(nanoseconds, units[i].nanoseconds),
                                  units[i].letter, out);
}

static bool
is_unescaped(char character)
{
    return character >= 0x20 && character <= 0x7e && character != '%';
}

/* The size of a UTF-8 character, or 1 for an invalid byte. */
static size_t
character_size(const char *text, size_t size)
{
    uint32_t ignored;
    size_t length = utf8_decode(text, size, &ignored);
    return length ? length : 1;
}

/*
 * HTTP/2 forbids values that begin or end with a space (RFC 9113, 8.2.1): a peer would refuse the
 * whole response.
 */
static void
trim_trailing_spaces(struct buffer *out, size_t start)
{
    while (out->size > start && out->bytes[out->size - 1] == ' ')
        out->size--;
}

void
grpc_text_encode_message(const char *text, size_t limit, struct buffer *out)
{
    const char *begin = text;
    size_t left = strlen(text), start = out->size;
    while (left) {
        size_t length = character_size(text, left);
        bool is_end_space = text[0] == ' ' && (text == begin || left == 1);
        size_t cost = is_unescaped(text[0]) && !is_end_space ? 1 : 3 * length;
        if (cost > limit) {
            trim_trailing_spaces(out, start);
            return;
        }
        if (cost == 1)
            buffer_append_byte(out, (uint8_t)text[0]);
        for (size_t i = 0; cost > 1 && i < length; i++)
            buffer_print(out, "%%%02X", (unsigned)(uint8_t)text[i]);
        limit -= cost;
        text += length;
        left -= length;
    }
}

/* Returns -1 if it is not a hexadecimal digit. */
static int
hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return -1;
}

void
grpc_text_decode_message(const char *text, size_t size, struct buffer *out)
{
    for (size_t i = 0; i < size; i++) {
        bool is_whole = text[i] == '%' && size - i > 2;
        int high = is_whole ? hex_value(text[i + 1]) : -1;
        int low = is_whole ? hex_value(text[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            buffer_append_byte(out, (uint8_t)(high << 4 | low));
            i += 2;
        } else {
            buffer_append_byte(out, (uint8_t)text[i]);
        }
    }
}

bool
grpc_text_is_grpc_content_type(const char *text, size_t size)
{
    static const char type[] = "application/grpc";
    const size_t type_size = sizeof type - 1;
    if (size < type_size || strncasecmp(text, type, type_size))
        return false;
    return size == type_size || text[type_size] == '+' || text[type_size] == ';';
}

int
grpc_text_parse_number(const char *text, size_t size, int otherwise)
{
    int number = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || number > 9999)
            return otherwise;
        number = number * 10 + (text[i] - '0');
    }
    return size ? number : otherwise;
}

enum code
grpc_text_code_of_http_status(int status)
{
    switch (status) {
    case 400:
        return CODE_INTERNAL;
    case 401:
        return CODE_UNAUTHENTICATED;
    case 403:
        return CODE_PERMISSION_DENIED;
    case 404:
        return CODE_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return CODE_UNAVAILABLE;
    default:
        return CODE_UNKNOWN;
    }
}

enum code
grpc_text_code_of_rst(uint32_t http2_error_code)
{
    switch (http2_error_code) {
    case 0x7: /* REFUSED_STREAM */
        return CODE_UNAVAILABLE;
    case 0x8: /* CANCEL */
        return CODE_CANCELLED;
    case 0xb: /* ENHANCE_YOUR_CALM */
        return CODE_RESOURCE_EXHAUSTED;
    case 0xc: /* INADEQUATE_SECURITY */
        return CODE_PERMISSION_DENIED;
    default:
        return CODE_INTERNAL;
    }
}

static bool
is_key_character(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
           character == '_' || character == '-' || character == '.';
}

bool
grpc_text_is_valid_metadata_key(const char *text, size_t size)
{
    static const char reserved[] = "grpc-";
    const size_t reserved_size = sizeof reserved - 1;
    if (!size || (size >= reserved_size && !memcmp(text, reserved, reserved_size)))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_key_character(text[i]))
            return false;
    }
    return true;
}

bool
grpc_text_is_valid_metadata_value(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    }
    return !size || (text[0] != ' ' && text[size - 1] != ' ');
}
