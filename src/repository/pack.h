/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pack: many chunks in one object, with a list of them at its end.
 *
 *     header, sealed chunks, sealed list, size of the sealed list (4 bytes)
 *
 * A chunk is compressed if that makes it smaller. An index (index_object.h) has the same lists.
 */
#ifndef REPOSITORY_PACK_H
#define REPOSITORY_PACK_H

#include "repository/sealing.h"

#define PACK_TARGET (8u << 20) /* a pack is closed when it has this size */
#define PACK_ENTRIES_MAX 32768u
#define PACK_ENTRY_BYTES 44u
#define PACK_END_BYTES 4u
/* Full but for one byte, and then a chunk that cannot be compressed. */
#define PACK_ROOM                                                                                  \
    (PACK_TARGET + REPOSITORY_CHUNK_MAX + PACK_ENTRIES_MAX * PACK_ENTRY_BYTES +                    \
     2 * SEALING_TAG_BYTES + PACK_END_BYTES)

_Static_assert(PACK_ROOM <= OBJECT_BYTES_MAX, "a pack is an object");

struct pack_entry {
    struct repository_id id;
    uint32_t offset; /* of the sealed chunk in the pack */
    uint32_t stored; /* its bytes, with the tag */
    uint32_t raw;    /* bytes of the chunk itself */
};

/* ---- making one ---- */

struct pack {
    uint8_t *bytes; /* PACK_ROOM */
    uint32_t size;
    struct sealing_key key;
    struct buffer entries; /* PACK_ENTRY_BYTES each */
    uint32_t count;
    struct object_name name; /* after pack_finish */
};

struct pack *pack_new(void);
void pack_free(struct pack *pack);

/* Empties the pack and begins another one. */
MUST_CHECK struct error *pack_begin(struct pack *pack, const struct sealing *sealing);

/* Takes space for a chunk of `size` bytes as it is stored, `raw` before; gives its offset. */
uint32_t pack_reserve(struct pack *pack, const struct repository_id *id, uint32_t size,
                      uint32_t raw);
bool pack_is_full(const struct pack *pack);

/* All chunks are sealed in their places: adds the list, and names the pack. */
MUST_CHECK struct error *pack_finish(struct pack *pack, const struct sealing *sealing);

/* ---- reading one ---- */

void pack_entry_append(struct buffer *out, const struct pack_entry *entry);
/* `bytes` has PACK_ENTRY_BYTES; `size` is that of the pack. False: it cannot be. */
bool pack_entry_read(const uint8_t *bytes, uint32_t size, struct pack_entry *out);

/* The list of a pack whose bytes are all there; `entries` is replaced. DATA_LOSS. */
MUST_CHECK struct error *pack_read_list(const struct sealing *sealing, const uint8_t *bytes,
                                        size_t size, struct sealing_key *key,
                                        struct buffer *entries);

/*
 * Opens a sealed chunk of `entry->stored` bytes, and checks it against its id; `out` has
 * REPOSITORY_CHUNK_MAX bytes. `work` is for compressed ones.
 */
MUST_CHECK struct error *pack_open_chunk(const struct sealing *sealing,
                                         const struct sealing_key *key,
                                         const struct pack_entry *entry, const uint8_t *sealed,
                                         struct buffer *work, uint8_t *out);

#endif
