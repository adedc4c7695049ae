/* SPDX-License-Identifier: Apache-2.0 */
/* An input, eaten from the front. When it is used up there are zeros. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
    const uint8_t *bytes;
    size_t size;
};

static inline uint8_t
input_byte(struct input *input)
{
    if (!input->size)
        return 0;
    input->size--;
    return *input->bytes++;
}

/* Up to `size` bytes; tells how many there were. */
static inline const uint8_t *
input_bytes(struct input *input, size_t size, size_t *got)
{
    const uint8_t *bytes = input->bytes;
    *got = size < input->size ? size : input->size;
    input->bytes += *got;
    input->size -= *got;
    return bytes;
}

/* Up to the byte `end`, which is eaten as well, or to the end of the input. */
static inline const uint8_t *
input_until(struct input *input, uint8_t end, size_t *got)
{
    const uint8_t *found = input->size ? memchr(input->bytes, end, input->size) : NULL;
    const uint8_t *bytes =
        input_bytes(input, found ? (size_t)(found - input->bytes) : input->size, got);
    if (found)
        input_byte(input);
    return bytes;
}

#endif
