/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small texts of gRPC over HTTP/2: timeouts, messages, content types, metadata, and codes from
 * elsewhere.
 */
#ifndef RPC_GRPC_GRPC_TEXT_H
#define RPC_GRPC_GRPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * "250m": one to eight digits and one of H M S m u n; UINT64_MAX if it is longer than that. False
 * for anything else.
 */
bool grpc_text_parse_timeout(const char *text, size_t size, uint64_t *nanoseconds);

/*
 * The finest unit that leaves at most eight digits, rounded up: what is left is never printed as
 * less, and no time at all as "1n", for peers that refuse zero. Gives the length; `out` ends with
 * NUL.
 */
size_t grpc_text_print_timeout(uint64_t nanoseconds, char out[16]);

/*
 * Appends the text as `grpc-message` wants it: bytes below 0x20 or above 0x7e and '%' as %XX. What
 * would exceed `limit` bytes is cut off, never inside a %XX nor inside a UTF-8 character.
 */
void grpc_text_encode_message(const char *text, size_t limit, struct buffer *out);

/* The way back. A '%' without two hexadecimal digits stays as it is. */
void grpc_text_decode_message(const char *text, size_t size, struct buffer *out);

/*
 * "application/grpc", alone or with "+proto" or ";parameters" behind it; not "application/grpc-
 * web".
 */
bool grpc_text_is_grpc_content_type(const char *text, size_t size);

/* The number of a status; `otherwise` for what is no number, or a large one. */
int grpc_text_parse_number(const char *text, size_t size, int otherwise);

/*
 * What a call ended with when its peer sent no grpc-status but an HTTP status, or reset the stream.
 */
enum code grpc_text_code_of_http_status(int status);
enum code grpc_text_code_of_rst(uint32_t http2_error_code);

/*
 * Keys that applications may use: not empty, 0-9 a-z _ - . only, and not one of gRPC's own
 * ("grpc-...").
 */
bool grpc_text_is_valid_metadata_key(const char *text, size_t size);

/* Printable ASCII. The value of a key that ends in "-bin" is checked after it is base64. */
bool grpc_text_is_valid_metadata_value(const char *text, size_t size);

#endif
