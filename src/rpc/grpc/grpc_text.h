/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text formats of gRPC over HTTP/2: timeouts, messages, content types, metadata, and the mapping of
 * HTTP statuses and HTTP/2 errors to codes.
 */
#ifndef RPC_GRPC_GRPC_TEXT_H
#define RPC_GRPC_GRPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * Parses "250m": one to eight digits and one of H M S m u n. Gives UINT64_MAX on overflow. Returns
 * false for anything else.
 */
bool grpc_text_parse_timeout(const char *text, size_t size, uint64_t *nanoseconds);

/*
 * Prints in the finest unit that needs at most eight digits, rounded up, so that a deadline is
 * never shortened. Zero is printed as "1n", because some peers refuse zero. Returns the length;
 * `out` is NUL-terminated.
 */
size_t grpc_text_print_timeout(uint64_t nanoseconds, char out[16]);

/*
 * Appends the text in the percent-encoding of grpc-message: '%' and bytes below 0x20 or above 0x7e
 * become %XX. Truncates to `limit` bytes, never inside a %XX or a UTF-8 character.
 */
void grpc_text_encode_message(const char *text, size_t limit, struct buffer *out);

/* Decodes grpc-message. A '%' without two hexadecimal digits is kept. */
void grpc_text_decode_message(const char *text, size_t size, struct buffer *out);

/*
 * Accepts "application/grpc", alone or followed by "+proto" or ";parameters"; not
 * "application/grpc-web".
 */
bool grpc_text_is_grpc_content_type(const char *text, size_t size);

/* Parses a status number. Returns `otherwise` if it is not a number or too large. */
int grpc_text_parse_number(const char *text, size_t size, int otherwise);

/* The code of a call whose peer sent an HTTP status without grpc-status, or reset the stream. */
enum code grpc_text_code_of_http_status(int status);
enum code grpc_text_code_of_rst(uint32_t http2_error_code);

/* Accepts keys that applications may use: not empty, only 0-9 a-z _ - . and no "grpc-" prefix. */
bool grpc_text_is_valid_metadata_key(const char *text, size_t size);

/* Printable ASCII. Values of "-bin" keys are checked after base64 encoding. */
bool grpc_text_is_valid_metadata_value(const char *text, size_t size);

#endif
