/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers are compressed if the link is slower than the compressor, and the data becomes smaller. */
#include <string.h>

#include "base/clock.h"
#include "base/rate.h"
#include "check.h"
#include "csi/transfer_packing.h"
#include "stream/stream_zstd.h"

#define CHUNK (UINT64_C(256) << 10)

/* A transfer of many chunks over a link, with times that are made up. */
struct trial {
    double link_ns;  /* per byte */
    double pack_ns;  /* per byte */
    double share;    /* what is left of a chunk */
    uint64_t packs;  /* results */
    uint64_t packed; /* chunks that were sent so */
};

static void
run(struct trial *trial, unsigned chunks)
{
    struct packing packing = {0};
    uint64_t small = (uint64_t)((double)CHUNK * trial->share);
    for (unsigned i = 0; i < chunks; i++) {
        bool is_packed = false;
        if (packing_wants(&packing)) {
            trial->packs++;
            is_packed = packing_take_packed(&packing, CHUNK, small,
                                            (uint64_t)((double)CHUNK * trial->pack_ns));
        }
        trial->packed += is_packed;
        if (!is_packed)
            packing_take_plain(&packing, CHUNK, (uint64_t)((double)CHUNK * trial->link_ns));
    }
}

static void
test_slow_links_are_compressed(void)
{
    struct trial trial = {.link_ns = 80, .pack_ns = 3, .share = 0.4};
    run(&trial, 4000);
    CHECK(trial.packed > 3600);
}

static void
test_fast_links_are_not_slowed_down(void)
{
    struct trial trial = {.link_ns = 0.5, .pack_ns = 3, .share = 0.4};
    run(&trial, 4000);
    CHECK(trial.packs < 20);
    struct trial equal = {.link_ns = 3, .pack_ns = 3, .share = 0.4};
    run(&equal, 4000);
    CHECK(equal.packs < 20);
}

static void
test_what_does_not_become_smaller_is_not_tried_again_and_again(void)
{
    struct trial trial = {.link_ns = 80, .pack_ns = 3, .share = 0.95};
    run(&trial, 4000);
    CHECK(trial.packs < 20);
    CHECK_NUMBER(trial.packed, 0);
}

static void
test_data_that_changes_is_noticed(void)
{
    struct packing packing = {0};
    unsigned packs = 0;
    for (unsigned i = 0; i < 1000; i++) {
        bool is_random = i >= 200;
        bool is_packed = packing_wants(&packing) &&
                         packing_take_packed(&packing, CHUNK, is_random ? CHUNK : CHUNK / 4, 1000);
        packs += is_packed;
        if (!is_packed)
            packing_take_plain(&packing, CHUNK, 80 * CHUNK);
    }
    CHECK(packs > 150 && packs <= 200);
}

static void
test_pieces_come_back_whole_or_not_at_all(void)
{
    static uint8_t piece[CHUNK], packed[CHUNK], again[CHUNK];
    struct stream_zstd *zstd = stream_zstd_new();
    for (size_t i = 0; i < sizeof piece; i++)
        piece[i] = (uint8_t)(i / 100);
    size_t size = stream_zstd_pack(zstd, piece, sizeof piece, packed, sizeof packed);
    CHECK(size && size < sizeof piece / 10);
    CHECK(!stream_zstd_unpack(packed, size, again, sizeof again));
    CHECK(memcmp(piece, again, sizeof piece) == 0);
    CHECK_NUMBER(stream_zstd_pack(zstd, piece, sizeof piece, packed, 10), 0);
    struct error *shorter = stream_zstd_unpack(packed, size, again, sizeof again - 1);
    struct error *longer = stream_zstd_unpack(packed, size / 2, again, sizeof again);
    CHECK(shorter && shorter->code == CODE_DATA_LOSS);
    CHECK(longer && longer->code == CODE_DATA_LOSS);
    error_free(shorter);
    error_free(longer);
    stream_zstd_free(zstd);
}

static void
test_a_rate_is_shared(void)
{
    struct rate rate;
    rate_init(&rate, 1000000);
    uint64_t start = clock_now_ns();
    CHECK_NUMBER(rate_take(&rate, 500000), 0);
    uint64_t second = rate_take(&rate, 500000), third = rate_take(&rate, 1);
    uint64_t passed = clock_now_ns() - start;
    CHECK(second <= 500000000 && second + passed >= 500000000);
    CHECK(third <= 1000000000 && third + passed >= 1000000000);
    rate_clear(&rate);
    rate_init(&rate, 0);
    CHECK_NUMBER(rate_take(&rate, UINT32_MAX), 0);
    CHECK_NUMBER(rate_take(&rate, UINT32_MAX), 0);
    rate_clear(&rate);
}

int
main(void)
{
    test_slow_links_are_compressed();
    test_fast_links_are_not_slowed_down();
    test_what_does_not_become_smaller_is_not_tried_again_and_again();
    test_data_that_changes_is_noticed();
    test_pieces_come_back_whole_or_not_at_all();
    test_a_rate_is_shared();
    return check_report("test_transfer_packing");
}
