/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When compression pays: see transfer_packing.h.
 *
 * The first chunks fill buffers and tell nothing about the link, so tests are frequent at first.
 * The speed of the link is measured only with chunks that are sent as they are: compressed ones
 * wait for the compressor too. So compression pauses now and then for a few chunks.
 */
#include "csi/transfer_packing.h"

#define FIRST_PAUSE 8u
#define LONGEST_PAUSE 512u
#define MEASURED 8u /* chunks sent as they are, before compression may go on */
#define LONGEST_RUN 128u
#define MOST_MISSES 4u
#define LEAST_GAIN 8

static unsigned
pause_of(const struct packing *packing)
{
    return packing->pause ? packing->pause : FIRST_PAUSE;
}

bool
packing_wants(const struct packing *packing)
{
    return packing->is_on || packing->chunks >= pause_of(packing);
}

static void
decide(struct packing *packing, bool is_on, unsigned pause)
{
    *packing =
        (struct packing){.is_on = is_on, .pause = pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE};
}

/*
 * Compression saves the time of the bytes that are not sent. That must be eight times that of the
 * compressor: what looks like a slow link may be a busy receiver, which needs the processor, too.
 */
static bool
pays(const struct packing *packing, uint64_t bytes, uint64_t packed_bytes, uint64_t pack_ns)
{
    double plain =
        packing->plain_bytes ? (double)packing->plain_ns / (double)packing->plain_bytes : 0;
    return LEAST_GAIN * (double)pack_ns < plain * (double)(bytes - packed_bytes);
}

bool
packing_take_packed(struct packing *packing, uint64_t bytes, uint64_t packed_bytes,
                    uint64_t pack_ns)
{
    bool is_smaller = packed_bytes && packed_bytes <= bytes - bytes / 10;
    packing->chunks++;
    packing->misses = is_smaller ? 0 : packing->misses + 1;
    if (!packing->is_on) {
        bool is_on = is_smaller && pays(packing, bytes, packed_bytes, pack_ns);
        decide(packing, is_on, is_on ? MEASURED : 2 * pause_of(packing));
    } else if (packing->misses >= MOST_MISSES) {
        decide(packing, false, 8 * MEASURED);
    } else if (packing->chunks >= LONGEST_RUN) {
        decide(packing, false, MEASURED);
    }
    return is_smaller;
}

void
packing_take_plain(struct packing *packing, uint64_t bytes, uint64_t ns)
{
    if (packing->is_on)
        return; /* one that did not become smaller */
    packing->chunks++;
    packing->plain_bytes += bytes;
    packing->plain_ns += ns;
}
