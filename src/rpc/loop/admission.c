/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts and turns: see admission.h. */
#include "rpc/loop/admission.h"

#include <stdlib.h>

#include "base/memory.h"

#define RESERVE_BYTES ((size_t)1 << 20)

/* ---- accounts ---- */

void
admission_init(struct admission *admission, size_t max_bytes, size_t max_streams)
{
    *admission = (struct admission){
        .bytes = {.limit = max_bytes - max_bytes / 4,
                  .guaranteed = max_bytes / 4 / ADMISSION_CONNECTIONS},
        .reserve.limit = RESERVE_BYTES,
        .streams.limit = max_streams,
        .line_end = &admission->line,
    };
    pthread_mutex_init(&admission->inflating, NULL);
    admission->own = account_new(admission);
    admission->own->bytes.has_no_share = true;
}

void
admission_clear(struct admission *admission)
{
    account_release(STEAL(admission->own));
    pthread_mutex_destroy(&admission->inflating);
}

struct account *
account_new(struct admission *admission)
{
    struct account *account = memory_zeroed(sizeof *account);
    atomic_init(&account->references, 1);
    account->bytes.pool = &admission->bytes;
    account->reserve.pool = &admission->reserve;
    account->streams.pool = &admission->streams;
    account->last_turn = &account->first_turn;
    return account;
}

struct account *
account_share(struct account *account)
{
    atomic_fetch_add_explicit(&account->references, 1, memory_order_relaxed);
    return account;
}

void
account_release(struct account *account)
{
    if (account && atomic_fetch_sub_explicit(&account->references, 1, memory_order_acq_rel) == 1)
        free(account);
}

/* ---- turns ---- */

static void
join_line(struct admission *admission, struct account *account)
{
    account->next_in_line = NULL;
    *admission->line_end = account;
    admission->line_end = &account->next_in_line;
}

/* Moves the account to the end of the line if more of its requests wait. NULL: none wait. */
static struct turn *
next_turn(struct admission *admission)
{
    struct account *account = admission->line;
    if (!account)
        return NULL;
    admission->line = account->next_in_line;
    if (!admission->line)
        admission->line_end = &admission->line;
    struct turn *turn = account->first_turn;
    account->first_turn = turn->next;
    if (account->first_turn)
        join_line(admission, account);
    else
        account->last_turn = &account->first_turn;
    return turn;
}

static void
begin_next(struct admission *admission)
{
    struct turn *turn;
    while (!admission->turn_is_taken && (turn = next_turn(admission))) {
        admission->turn_is_taken = true; /* `begin` may add others to the line */
        admission->turn_is_taken = turn->begin(turn);
    }
}

void
admission_await_turn(struct admission *admission, struct account *account, struct turn *turn)
{
    turn->next = NULL;
    if (!account->first_turn)
        join_line(admission, account);
    *account->last_turn = turn;
    account->last_turn = &turn->next;
    begin_next(admission);
}

void
admission_end_turn(struct admission *admission)
{
    admission->turn_is_taken = false;
    begin_next(admission);
}
