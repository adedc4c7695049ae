/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings: see json.h. */
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool
needs_escape(uint32_t code_point)
{
    return code_point < 0x20 || code_point == '"' || code_point == '\\' ||
           (code_point >= 0x7f && code_point <= 0x9f) || code_point == 0x2028 ||
           code_point == 0x2029;
}

static void
append_escape(struct buffer *out, uint32_t code_point)
{
    switch (code_point) {
    case '"':
    case '\\':
        buffer_print(out, "\\%c", (char)code_point);
        break;
    case '\n':
        buffer_append_text(out, "\\n");
        break;
    case '\r':
        buffer_append_text(out, "\\r");
        break;
    case '\t':
        buffer_append_text(out, "\\t");
        break;
    default:
        buffer_print(out, "\\u%04x", (unsigned)code_point);
    }
}

/* Most characters are, and need no decoding. */
static bool
is_plain(char character)
{
    return character >= 0x20 && character < 0x7f && character != '"' && character != '\\';
}

/* Copies sequences of plain characters at once. */
void
json_append_string(struct buffer *out, const char *text, size_t size)
{
    size_t done = 0, next = 0;
    buffer_append_byte(out, '"');
    while (next < size) {
        if (is_plain(text[next])) {
            next++;
            continue;
        }
        uint32_t code_point;
        size_t length = utf8_decode(text + next, size - next, &code_point);
        if (length && !needs_escape(code_point)) {
            next += length;
            continue;
        }
        buffer_append(out, text + done, next - done);
        if (length)
            append_escape(out, code_point);
        else
            buffer_append_text(out, REPLACEMENT);
        next += length ? length : 1;
        done = next;
    }
    buffer_append(out, text + done, size - done);
    buffer_append_byte(out, '"');
}

void
json_append_member(struct buffer *out, const char *name, const char *text)
{
    buffer_print(out, "%s\"%s\":", out->size ? "," : "{", name);
    json_append_string(out, text, strlen(text));
}
