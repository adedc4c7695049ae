/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the strings of an encoded message. protobuf-c does not check them: its strings end at the
 * first NUL, and may be invalid UTF-8, which proto3 forbids. Internal to rpc/.
 */
#ifndef MESSAGE_TEXT_H
#define MESSAGE_TEXT_H

#include <protobuf-c/protobuf-c.h>

enum message_text {
    MESSAGE_TEXT_VALID,
    MESSAGE_TEXT_HAS_NUL, /* a string would be truncated */
    MESSAGE_TEXT_NOT_UTF8,
};

/* The message must have been decoded successfully before: malformed bytes are not reported. */
enum message_text message_text_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                                     size_t size);

#endif
