/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the strings of an encoded message: see message_text.h. */
#include "message/message_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

struct bytes {
    const uint8_t *next;
    const uint8_t *end;
};

enum wire_type { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 };

static bool
read_varint(struct bytes *in, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; in->next < in->end && shift < 64; shift += 7) {
        uint8_t byte = *in->next++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/*
 * Skips the value after a tag and returns its bytes. Returns false if it is invalid or truncated.
 */
static bool
read_value(struct bytes *in, unsigned wire_type, const uint8_t **value, size_t *size)
{
    uint64_t number = 0;
    if (wire_type == WIRE_VARINT || wire_type == WIRE_LENGTH) {
        if (!read_varint(in, &number))
            return false;
        number = wire_type == WIRE_LENGTH ? number : 0;
    } else if (wire_type == WIRE_8_BYTES) {
        number = 8;
    } else if (wire_type == WIRE_4_BYTES) {
        number = 4;
    } else {
        return false;
    }
    if (number > (size_t)(in->end - in->next))
        return false;
    *value = in->next;
    *size = (size_t)number;
    in->next += number;
    return true;
}

static enum message_text
check_string(const uint8_t *text, size_t size)
{
    if (size && memchr(text, '\0', size))
        return MESSAGE_TEXT_HAS_NUL;
    return utf8_is_valid(text, size) ? MESSAGE_TEXT_VALID : MESSAGE_TEXT_NOT_UTF8;
}

/* The recursion is limited by the nesting of the types; none of ours contains itself. */
enum message_text
message_text_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size)
{
    struct bytes in = {bytes, bytes + size};
    enum message_text found = MESSAGE_TEXT_VALID;
    uint64_t tag;
    const uint8_t *value;
    while (found == MESSAGE_TEXT_VALID && read_varint(&in, &tag) &&
           read_value(&in, tag & 7, &value, &size)) {
        const ProtobufCFieldDescriptor *field =
            (tag & 7) == WIRE_LENGTH
                ? protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3))
                : NULL;
        if (field && field->type == PROTOBUF_C_TYPE_STRING)
            found = check_string(value, size);
        else if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
            found = message_text_check(field->descriptor, value, size);
    }
    return found;
}
