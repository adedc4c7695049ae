/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sums protect a stream. Each command carries a CRC32C, so that damage is found before the
 * command is applied. The sum of a position covers all commands up to there, so that a command that
 * is missing, repeated or of another stream is found at the end.
 */
#ifndef STREAM_STREAM_SUMS_H
#define STREAM_STREAM_SUMS_H

#include "stream/stream.h"

/* The CRC32C of a whole command, with 0 in place of its checksum. */
uint32_t stream_sums_check(const uint8_t *command, size_t size);

/* Moves the position behind a whole command (or the header of the stream). */
void stream_sums_advance(struct stream_position *position, const uint8_t *command, size_t size);

#endif
