/* SPDX-License-Identifier: Apache-2.0 */
/* Names of objects and chunks in hex: see objects.h. */
#include <string.h>

#include "repository/objects.h"

static const char digits[] = "0123456789abcdef";

static void
print_hex(const uint8_t *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = 0;
}

void
repository_id_print(const struct repository_id *id, char text[REPOSITORY_NAME_BYTES])
{
    print_hex(id->bytes, sizeof id->bytes, text);
}

bool
object_key_is_config(const char *key)
{
    return !strncmp(key, "00/", 3);
}

void
object_key_print(enum object_kind kind, const struct object_name *name, char key[OBJECT_KEY_BYTES])
{
    uint8_t byte = (uint8_t)kind;
    print_hex(&byte, 1, key);
    key[2] = '/';
    print_hex(name->bytes, sizeof name->bytes, key + 3);
}

static int
digit_value(char digit)
{
    const char *found = digit ? strchr(digits, digit) : NULL;
    return found ? (int)(found - digits) : -1;
}

bool
object_name_parse(const char *text, struct object_name *out)
{
    for (size_t i = 0; i < OBJECT_NAME_BYTES; i++) {
        int high = digit_value(text[2 * i]);
        int low = high < 0 ? -1 : digit_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        out->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return !text[2 * OBJECT_NAME_BYTES];
}
