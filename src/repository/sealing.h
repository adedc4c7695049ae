/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cryptography of a repository. Every object begins with a header that has a random salt; the
 * object's key is derived from the repository's key and the salt. The bytes behind the header are
 * sealed in pieces: AES-256-GCM, with the position of the piece as the nonce. In a repository
 * without encryption, a piece stands in clear and a part of its SHA-256 is in the place of the tag.
 * Safe from any thread.
 */
#ifndef REPOSITORY_SEALING_H
#define REPOSITORY_SEALING_H

#include "repository/objects.h"

#define SEALING_KEY_BYTES 32u
#define SEALING_HEADER_BYTES 48u
#define SEALING_TAG_BYTES 16u

struct sealing;

/* The key of one object. */
struct sealing_key {
    enum object_kind kind;
    uint8_t salt[32];
    uint8_t bytes[SEALING_KEY_BYTES];
};

/* `key`: the repository's; NULL: no encryption. */
MUST_CHECK struct error *sealing_new(const uint8_t key[SEALING_KEY_BYTES], struct sealing **out);
/* NULL is fine. */
void sealing_free(struct sealing *sealing);
bool sealing_encrypts(const struct sealing *sealing);

/* The header of a new object, with a new salt, and its key. */
MUST_CHECK struct error *sealing_begin(const struct sealing *sealing, enum object_kind kind,
                                       uint8_t header[SEALING_HEADER_BYTES],
                                       struct sealing_key *key);
/* The key of an object with this header. DATA_LOSS: it is none of this kind. */
MUST_CHECK struct error *sealing_read_header(const struct sealing *sealing, enum object_kind kind,
                                             const uint8_t header[SEALING_HEADER_BYTES],
                                             struct sealing_key *key);
MUST_CHECK struct error *sealing_derive(const struct sealing *sealing, enum object_kind kind,
                                        const uint8_t salt[32], struct sealing_key *key);

/* Whether the header is that of an encrypted object. */
bool sealing_header_is_encrypted(const uint8_t header[SEALING_HEADER_BYTES]);

/*
 * Seals `size` bytes as the piece at `position` of the object; `out` has SEALING_TAG_BYTES more.
 * The two may be the same place. A position is used once.
 */
MUST_CHECK struct error *sealing_seal(const struct sealing *sealing, const struct sealing_key *key,
                                      uint64_t position, const uint8_t *bytes, size_t size,
                                      uint8_t *out);

/* `size` is that of `out`. DATA_LOSS: the piece is damaged, or another one. */
MUST_CHECK struct error *sealing_open(const struct sealing *sealing, const struct sealing_key *key,
                                      uint64_t position, const uint8_t *sealed, size_t size,
                                      uint8_t *out);

/* The id of a chunk with these contents. */
MUST_CHECK struct error *sealing_identify(const struct sealing *sealing, const void *bytes,
                                          size_t size, struct repository_id *id);

/* SHA-256, the name of an object with these contents. */
MUST_CHECK struct error *sealing_name(const struct sealing *sealing, const void *bytes, size_t size,
                                      struct object_name *name);

MUST_CHECK struct error *sealing_random(void *bytes, size_t size);

#endif
