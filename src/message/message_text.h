/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strings of a message, checked where they stand on the wire: what protobuf-c makes of them ends at the first NUL, and whether it is UTF-8,
 * as proto3 demands, it does not ask. Internal to rpc/.
 */
#ifndef MESSAGE_TEXT_H
#define MESSAGE_TEXT_H

#include <protobuf-c/protobuf-c.h>

enum message_text {
    MESSAGE_TEXT_GOOD,
    MESSAGE_TEXT_HAS_NUL, /* a string would be cut */
    MESSAGE_TEXT_NOT_UTF8,
};

/* Of a message that has been decoded before: bytes that are no message are not told. */
enum message_text message_text_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                                     size_t size);

#endif
