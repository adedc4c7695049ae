/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of moving, deleting and recovering a volume, for spin. docs/cluster.md states the protocol in words;
 * a number such as [4] here is that of a rule there. Change the two together.
 *
 * There are one volume, three nodes and the registry. Each step below is one durable write of a
 * node, one message, or one change in the registry, and it is atomic. Between any two steps
 * anything else may happen:
 *
 *   - A node crashes. It loses what is in memory and keeps its row. Its messages are late or lost.
 *     It may stay down for ever.
 *   - The registry does not answer. This needs no step, because no message has to arrive soon.
 *   - The registry loses all rows. A new incarnation begins, and the nodes announce theirs.
 *   - A message is late or repeated. A swap stays in flight until it cannot succeed any more, even
 *     if its sender crashes. Only a crash loses messages: a sender that is up repeats what was
 *     lost, and that is the same as a message that is late.
 *   - A user moves the volume on, or back, or deletes it, also in the middle of a move.
 *   - An operator recovers the volume from an old copy, while its owner is down, cut off or in the
 *     middle of a move; also twice, on two nodes. A node that is cut off is one that takes no step
 *     for a while: it stays LIVE until it reads the registry.
 *
 * Publishing and writing have no steps. A LIVE volume counts as published and as written to, since
 * both may happen at any time. A copy has the writes of a set of epochs. One that is recovered from
 * a snapshot begins with none, which is the worst case.
 *
 * Progress is checked as a safety property. Moves, deletions and faults have budgets; all other
 * steps go forward only. So every run ends (the test checks that there is no cycle), and the state
 * at its end must be settled: see never_stuck. The step `calm` ends all faults at any moment.
 * Together: from every reachable state, every continuation without more faults ends in a settled
 * state. No fairness is needed except that a node that is up goes on trying while the registry
 * answers.
 *
 * Flags such as -DIGNORE_EPOCH remove one rule each; the test shows that a property then fails.
 */

#ifndef MOVES
#define MOVES 3
#endif
#ifndef DELETIONS
#define DELETIONS 1
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef RECOVERIES
#define RECOVERIES 0
#endif
#ifndef DEATHS
#define DEATHS 1 /* crashes of nodes that do not come back */
#endif
#ifndef LOSSES
#define LOSSES 2 /* of all rows of the registry */
#endif

#define HOME 0   /* the node that made the volume */
#define NOBODY 3 /* the owner of a deleted volume, and the target of a deletion */
#define UNREAD 4
#define EPOCHS (MOVES + DELETIONS + RECOVERIES + 1) /* at most 8: they are bits of a byte */

/* [1] The row of the volume in a node's store. It is durable. */
mtype = { NONE, LIVE, MOVING, INCOMING, GONE, SUPERSEDED };
mtype state[3] = { LIVE, NONE, NONE }; /* by node */
byte epoch[3]; /* LIVE, GONE: the decided one. MOVING, INCOMING: the one to be decided. */
byte peer[3];  /* MOVING: the target. INCOMING: the source. */
byte recovered[3]; /* [13] the epoch at which the volume was recovered, the last time; 0: never */

/* What a node has in memory. */
byte pulled_epoch[3]; /* of the transfer that runs, or has ended; 0: none */
byte pulled_from[3];
byte pulled_recovered[3];
byte seen_owner[3] = UNREAD; /* an answer of the registry that the node has yet to act on */
byte seen_epoch[3];
byte seen_recovered[3];
bool behind[3]; /* [13] somebody lost the volume without a wish, and the node has not looked yet */

/* The registry. */
bool known = true; /* this incarnation has settled who owns the volume */
byte reg_owner = HOME, reg_epoch = 0, reg_recovered = 0;

/*
 * Swaps in flight. The one from (s, e) to (w, e + 1) is a bit of sent[e]. A recovery that gives up
 * has another bit.
 */
short sent[EPOCHS];

/* Announcements to a new incarnation: the row as it was when the node sent it. */
mtype = { UNSENT, SENT, HEARD };
mtype told[3] = HEARD;
mtype word_state[3] = NONE;
byte word_epoch[3];
byte word_recovered[3];

/* What users and faults may still do. */
byte moves = MOVES, deletions = DELETIONS, recoveries = RECOVERIES, crashes = CRASHES;
byte deaths = DEATHS, losses = LOSSES;
bool dead[3];

/* Only for the properties. Sets of epochs are bits. */
byte writes[3] = { 1, 0, 0 }; /* the epochs whose writes the copy of the node has */
byte pulled_writes[3];
byte begun = 1;           /* the epochs in which a node was LIVE */
byte newest = 1;          /* what the last node has that was LIVE, or whose recovery was decided */
byte newest_epoch = 0;
byte kept = 0;            /* what is in snapshots, and what users have deleted */
bool lost_write = false;  /* a node became LIVE without what the one before had */
bool two_owners = false;  /* in one epoch two nodes were LIVE */
bool old_has_won = false; /* a LIVE copy was superseded, but not by a later recovery */
bool deleted = false;     /* a deletion was answered */
bool clean[3];           /* the node has said, after the deletion, that it has nothing */

/* For one step only; 0 between steps. */
byte pick, pick_rank, pick_epoch, pick_recovered;

#define up(n) (!dead[n])
#define in_doubt(n) (state[n] == MOVING || state[n] == INCOMING)
#define is_giving(n) (state[n] == MOVING && peer[n] != NOBODY)
#define is_deleting(n) (state[n] == MOVING && peer[n] == NOBODY)
#define is_taking(n) (state[n] == INCOMING)
#define is_recovering(n) (is_taking(n) && recovered[n] == epoch[n])
#define swap(s, w) (1 << ((s) * 4 + (w)))
#define RETURN 4 /* instead of w: the owner stays, because the node that recovers gives up */
#define swap_back(s) (1 << (12 + (s)))
#define in_flight(s, e, w) ((sent[e] & ((w) == RETURN -> swap_back(s) : swap(s, w))) != 0)
#define hears(n) (known && told[n] == HEARD)
#define shows(s, e) (known && reg_owner == (s) && reg_epoch == (e))
#define all_heard (told[0] == HEARD && told[1] == HEARD && told[2] == HEARD)

/* From now on the recovered copy is the volume. */
inline note_recovery()
{
    if
    :: reg_owner != NOBODY && is_recovering(reg_owner) && epoch[reg_owner] == reg_epoch ->
        newest = writes[reg_owner];
        newest_epoch = reg_epoch
    :: else
    fi
}

/* [13] In the same write as what has happened. */
inline tell_all()
{
    behind[0] = RECOVERIES > 0;
    behind[1] = RECOVERIES > 0;
    behind[2] = RECOVERIES > 0
}

/* ---- what users ask for ---- */

/* [2] The first target is 1: until then the nodes 1 and 2 are alike, so nothing is left out. */
inline begin_move(n, t)
{
    d_step {
        up(n) && n != t && state[n] == LIVE && moves > 0 && (epoch[n] > 0 || t == 1) ->
        moves--;
        state[n] = MOVING;
        epoch[n]++;
        peer[n] = t;
        printf("node %d: writes MOVING to node %d, epoch %d\n", n, t, epoch[n])
    }
}

/* [7] Also in the place of a move that is not decided; it has the same epoch then. */
inline begin_deletion(n)
{
    d_step {
        up(n) && deletions > 0 && ((state[n] == LIVE && epoch[n] > 0) || is_giving(n)) ->
        deletions--;
        epoch[n] = epoch[n] + (state[n] == LIVE -> 1 : 0);
        state[n] = MOVING;
        peer[n] = NOBODY;
        printf("node %d: writes MOVING to nobody, epoch %d\n", n, epoch[n])
    }
}

/* [13] The operator takes the owner for lost. It may be down, or only cut off. */
inline recover(n)
{
    d_step {
        up(n) && recoveries > 0 && hears(n) && state[n] == NONE && pulled_epoch[n] == 0 &&
            reg_owner != n && reg_owner != NOBODY ->
        recoveries--;
        state[n] = INCOMING;
        epoch[n] = reg_epoch + 1;
        peer[n] = reg_owner;
        recovered[n] = epoch[n];
        printf("node %d: writes INCOMING to recover the volume of node %d, epoch %d\n", n, peer[n],
               epoch[n])
    }
}

/* ---- the target ---- */

#ifdef PULL_UNASKED
#define may_pull(s) (true)
#else
#define may_pull(s) shows(s, epoch[s] - 1)
#endif

/*
 * [3] The transfer begins. The source stays MOVING until it ends, so the data does not change. Here
 * it may also end well if the source does not: the model has more runs than the program.
 */
inline pull(n, s)
{
    d_step {
        up(n) && up(s) && state[n] == NONE && pulled_epoch[n] == 0 && is_giving(s) &&
            peer[s] == n && told[n] == HEARD && may_pull(s) ->
        pulled_epoch[n] = epoch[s];
        pulled_from[n] = s;
        pulled_recovered[n] = recovered[s];
        pulled_writes[n] = writes[s];
        printf("node %d: pulls the data from node %d for epoch %d\n", n, s, epoch[s])
    }
}

inline forget_pulled(n)
{
    pulled_epoch[n] = 0;
    pulled_from[n] = 0;
    pulled_recovered[n] = 0;
    pulled_writes[n] = 0
}

inline write_incoming(n)
{
    d_step {
        up(n) && pulled_epoch[n] != 0 ->
        state[n] = INCOMING;
        epoch[n] = pulled_epoch[n];
        peer[n] = pulled_from[n];
        recovered[n] = pulled_recovered[n];
        writes[n] = pulled_writes[n];
        forget_pulled(n);
        printf("node %d: writes INCOMING from node %d, epoch %d\n", n, peer[n], epoch[n])
    }
}

/* ---- the swap, and what follows from it ---- */

/*
 * [4] Node n, if it may, asks for the swap from (s, e) to (w, e + 1); e + 1 is in its own row.
 * A swap that expects another row than the present one would have no effect, now or later.
 */
inline send(n, may, s, w)
{
    d_step {
        up(n) && may && told[n] == HEARD && shows(s, epoch[n] - 1) &&
            !in_flight(s, epoch[n] - 1, w) ->
        sent[epoch[n] - 1] = sent[epoch[n] - 1] | (w == RETURN -> swap_back(s) : swap(s, w));
        printf("node %d: sends the swap (%d, %d) -> (%d, %d)\n", n, s, epoch[n] - 1,
               (w == RETURN -> s : w), epoch[n])
    }
}

#ifdef TELL_NOBODY
#define tell_swapped() skip
#else
#define tell_swapped() tell_all()
#endif
/* It changes the epoch of a node that did not ask for it. */
#define is_unwished(w) \
    ((w) == RETURN || ((w) < NOBODY && is_recovering(w) && epoch[w] == reg_epoch))

inline decide(w)
{
    d_step {
        known && reg_owner != NOBODY && in_flight(reg_owner, reg_epoch, w) ->
        printf("registry: swaps (%d, %d) -> (%d, %d)\n", reg_owner, reg_epoch,
               (w == RETURN -> reg_owner : w), reg_epoch + 1);
#ifndef ACCEPT_OLD_SWAPS
        sent[reg_epoch] = 0; /* None of these can succeed any more. */
#endif
        reg_owner = (w == RETURN -> reg_owner : w);
        reg_epoch++;
        if
        :: is_unwished(w) ->
            reg_recovered = reg_epoch; /* [13] */
            note_recovery();
            tell_swapped()
        :: else
        fi
    }
}

#ifdef IGNORE_EPOCH
#define is_decided(n) (true)
#else
#define is_decided(n) (reg_epoch >= epoch[n])
#endif
#ifdef LATER_IS_NOT_MINE
#define is_mine(n) (seen_owner[n] == n && seen_epoch[n] <= epoch[n])
#else
#define is_mine(n) (seen_owner[n] == n)
#endif
#define is_my_deletion(n) \
    (is_deleting(n) && seen_owner[n] == NOBODY && seen_epoch[n] == epoch[n])

/* [5] A read that shows an older epoch says nothing, and the node does nothing. */
inline read_row(n)
{
    d_step {
        up(n) && hears(n) && in_doubt(n) && seen_owner[n] == UNREAD && is_decided(n) ->
        seen_owner[n] = reg_owner;
        seen_epoch[n] = reg_epoch;
        seen_recovered[n] = reg_recovered;
        printf("node %d: reads (%d, %d)\n", n, reg_owner, reg_epoch)
    }
}

inline forget_read(n)
{
    seen_owner[n] = UNREAD;
    seen_epoch[n] = 0;
    seen_recovered[n] = 0
}

inline drop(n)
{
    state[n] = NONE;
    epoch[n] = 0;
    peer[n] = 0;
    recovered[n] = 0;
    writes[n] = 0
}

/* From now on the volume is published here and written to. */
inline become_live(n, e)
{
    lost_write = lost_write || (e >= newest_epoch && !is_recovering(n) && (newest & ~writes[n]) != 0);
    epoch[n] = (e > epoch[n] -> e : epoch[n]);
    two_owners = two_owners || (begun & (1 << epoch[n])) != 0;
    begun = begun | (1 << epoch[n]);
    writes[n] = writes[n] | (1 << epoch[n]);
    newest = (epoch[n] >= newest_epoch -> writes[n] : newest);
    newest_epoch = (epoch[n] >= newest_epoch -> epoch[n] : newest_epoch);
    state[n] = LIVE;
    peer[n] = 0;
    printf("node %d: writes LIVE, epoch %d\n", n, epoch[n])
}

/* [13] The epoch does not count any more. */
inline supersede(n)
{
    state[n] = SUPERSEDED;
    epoch[n] = 0;
    peer[n] = 0;
    recovered[n] = 0;
    printf("node %d: writes SUPERSEDED\n", n)
}

#ifdef DROP_WITHOUT_LOOKING
#define is_superseding(n) (false)
#else
#define is_superseding(n) (seen_recovered[n] >= epoch[n] && recovered[n] != epoch[n])
#endif

inline act(n)
{
    d_step {
        up(n) && seen_owner[n] != UNREAD ->
        if
        :: is_mine(n) -> become_live(n, seen_epoch[n])
        :: is_my_deletion(n) ->
            printf("node %d: writes GONE, epoch %d, and removes its copy\n", n, epoch[n]);
            deleted = true;
            kept = kept | writes[n];
            writes[n] = 0;
#ifdef KEEP_NO_TOMBSTONE
            drop(n)
#else
            state[n] = GONE;
            peer[n] = 0
#endif
        :: else ->
            if
            :: is_superseding(n) -> supersede(n)
            :: else ->
            drop(n);
            printf("node %d: removes its copy\n", n)
            fi
        fi;
        forget_read(n)
    }
}

/* ---- the owner that was lost is back ---- */

#ifdef LOOK_WITHOUT_LOCK
#define is_unlocked(n) (true)
#else
#define is_unlocked(n) (seen_owner[n] == UNREAD)
#endif

/* [13] At a start, and whenever `behind` is true. It waits for the lock of the volume. */
inline look(n)
{
    d_step {
        up(n) && hears(n) && behind[n] && is_unlocked(n) ->
        behind[n] = false;
        if
        :: state[n] == LIVE && reg_owner != n && reg_epoch >= epoch[n] ->
            old_has_won = old_has_won || reg_recovered <= epoch[n];
            supersede(n)
#ifndef KEEP_OLD_EPOCH
        :: state[n] == LIVE && reg_owner == n && reg_epoch > epoch[n] ->
            become_live(n, reg_epoch)
#endif
        :: else
        fi
    }
}

/* [13] Its last user has stopped. The copy is removed in another step; a crash may be in between. */
inline take_snapshot(n)
{
    d_step {
        up(n) && state[n] == SUPERSEDED && (writes[n] & ~kept) != 0 ->
        kept = kept | writes[n];
        printf("node %d: takes a snapshot\n", n)
    }
}

#ifdef LEAVE_WITHOUT_SNAPSHOT
#define may_leave(n) (true)
#else
#define may_leave(n) ((writes[n] & ~kept) == 0)
#endif

inline leave(n)
{
    d_step {
        up(n) && state[n] == SUPERSEDED && may_leave(n) ->
        drop(n);
        printf("node %d: removes its superseded copy\n", n)
    }
}

#ifdef DROP_EARLY
inline drop_early(n)
{
    d_step {
        up(n) && is_giving(n) && is_taking(peer[n]) && epoch[peer[n]] == epoch[n] ->
        drop(n);
        forget_read(n);
        printf("node %d: removes its copy, because the target has one\n", n)
    }
}
#endif

/* [12] The node that deleted the volume, d, asks node n. */
inline confirm(n, d)
{
    d_step {
        up(n) && up(d) && state[d] == GONE && state[n] == NONE && pulled_epoch[n] == 0 &&
            !clean[n] ->
        clean[n] = true;
        printf("node %d: says that it has nothing of the volume\n", n)
    }
}

/* ---- a new incarnation of the registry ---- */

#ifdef HIDE_INCOMING
#define is_announced(n) (state[n] != INCOMING)
#else
/* [9] A volume that never left its home has no row elsewhere. */
#define is_announced(n) ((state[n] != LIVE || epoch[n] > 0) && state[n] != SUPERSEDED)
#endif
#define has_changed(n) (is_announced(n) && (word_state[n] != state[n] || word_epoch[n] != epoch[n]))

inline announce(n)
{
    d_step {
        up(n) && (told[n] == UNSENT || (told[n] == SENT && has_changed(n))) ->
        told[n] = SENT;
        if
        :: is_announced(n) ->
            word_state[n] = state[n];
            word_epoch[n] = epoch[n];
            word_recovered[n] = recovered[n]
        :: else ->
            word_state[n] = NONE;
            word_epoch[n] = 0;
            word_recovered[n] = 0
        fi;
#ifndef KEEP_READ
        forget_read(n); /* [8] Another incarnation gave that answer. */
#endif
        printf("node %d: announces %e, epoch %d\n", n, word_state[n], word_epoch[n])
    }
}

/* What was told to an earlier incarnation counts for nothing. */
inline clear_announcement(n, is_told)
{
#ifdef ACCEPT_OLD_ANNOUNCEMENTS
    told[n] = (is_told == UNSENT && told[n] != UNSENT -> SENT : is_told)
#else
    told[n] = is_told;
    word_state[n] = NONE;
    word_epoch[n] = 0;
    word_recovered[n] = 0
#endif
}

inline clear_announcements(is_told)
{
    clear_announcement(0, is_told); clear_announcement(1, is_told); clear_announcement(2, is_told)
}

#ifdef TELL_NOBODY_OF_SETTLING
#define tell_settled() skip
#else
#define tell_settled() tell_all()
#endif

inline settle(o, e, r)
{
    known = true;
    reg_owner = o;
    reg_epoch = e;
    reg_recovered = r;
    note_recovery();
    tell_settled();
    printf("registry: settles (%d, %d)\n", reg_owner, reg_epoch)
}

#ifdef OLD_COPY_WINS
#define incoming_rank(n) (4 * word_epoch[n] + 8)
#else
#define incoming_rank(n) (4 * word_epoch[n])
#endif

#ifdef LIVE_ALWAYS_WINS
#define live_rank(n) (4 * word_epoch[n] + 100)
#else
#define live_rank(n) (4 * word_epoch[n] + 5)
#endif

inline choose(o, e, r, rank)
{
    pick = o;
    pick_epoch = e;
    pick_recovered = r;
    pick_rank = rank
}

/*
 * [10] The highest epoch wins. At the same epoch INCOMING wins over MOVING. LIVE e has the data of
 * MOVING e + 1 and INCOMING e + 1, and wins over them.
 */
inline consider(n)
{
    if
    :: word_state[n] == MOVING && 4 * word_epoch[n] - 2 > pick_rank ->
        choose(n, word_epoch[n] - 1, word_recovered[n], 4 * word_epoch[n] - 2)
    :: word_state[n] == INCOMING && incoming_rank(n) > pick_rank ->
        choose(n, word_epoch[n], word_recovered[n], incoming_rank(n))
    :: (word_state[n] == LIVE || word_state[n] == GONE) && live_rank(n) > pick_rank ->
        choose((word_state[n] == LIVE -> n : NOBODY), word_epoch[n], word_recovered[n],
               live_rank(n))
    :: else
    fi
}

#ifdef SETTLE_FIRST
#define is_complete(n) (word_state[n] != NONE)
#else
#define is_complete(n) all_heard
#endif

#ifdef LIVE_SETTLES_FIRST
#define settles_alone(n) \
    ((word_state[n] == LIVE || word_state[n] == GONE) && (!known || word_epoch[n] > reg_epoch))
#else
#define settles_alone(n) (false)
#endif

inline hear(n)
{
    d_step {
        told[n] == SENT ->
        told[n] = HEARD;
        printf("registry: hears node %d\n", n);
        if
        :: settles_alone(n) ->
            settle((word_state[n] == LIVE -> n : NOBODY), word_epoch[n], word_recovered[n])
        :: !settles_alone(n) && !known && is_complete(n) ->
            pick = HOME;
            consider(0); consider(1); consider(2);
            settle(pick, pick_epoch, pick_recovered);
            choose(0, 0, 0, 0)
        :: else
        fi;
        if
        :: known && all_heard -> clear_announcements(HEARD)
        :: else
        fi
    }
}

/* ---- faults ---- */

/* [8] A message to an earlier incarnation cannot succeed, so it is removed. */
inline lose_rows()
{
    d_step {
        losses > 0 ->
        losses--;
        printf("registry: loses all rows\n");
#ifndef ACCEPT_OLD_SWAPS
        sent[reg_epoch] = 0;
#endif
        known = false;
        reg_owner = 0;
        reg_epoch = 0;
        reg_recovered = 0;
        clear_announcements(UNSENT)
    }
}

#ifdef PUT_BACK
/* The backup was made before the volume was moved for the first time. */
inline put_back()
{
    d_step {
        losses > 0 && known ->
        losses--;
        reg_owner = HOME;
        reg_epoch = 0;
        printf("registry: is put back to (%d, %d)\n", reg_owner, reg_epoch)
    }
}
#endif

#define has_memory(n) (pulled_epoch[n] != 0 || seen_owner[n] != UNREAD)
#define has_messages(n) (sent[reg_epoch] != 0 || told[n] == SENT)

/* A crash that changes nothing is left out. */
inline fail(n, budget, for_ever, loses)
{
    d_step {
        budget > 0 && up(n) && (loses -> has_messages(n) : for_ever || has_memory(n)) ->
        budget--;
        dead[n] = for_ever;
        forget_pulled(n);
        forget_read(n);
        behind[n] = RECOVERIES > 0;
        if
        :: loses ->
            sent[reg_epoch] = 0;
            told[n] = (told[n] == SENT -> UNSENT : told[n])
        :: else
        fi;
        printf("node %d: crashes; for ever: %d; messages in flight are lost: %d\n", n, for_ever,
               loses)
    }
}

inline calm()
{
    d_step {
        moves + deletions + recoveries + crashes + deaths + losses > 0 ->
        moves = 0;
        deletions = 0;
        recoveries = 0;
        crashes = 0;
        deaths = 0;
        losses = 0;
        printf("from here on there are no faults and no wishes\n")
    }
}

/* ---- the properties ---- */

#ifdef PUBLISH_MOVING
#define publishes(n) (state[n] == LIVE || state[n] == MOVING)
#else
#define publishes(n) (state[n] == LIVE)
#endif
#define owns(n) (!known || (reg_owner == n && reg_epoch == epoch[n]))
/*
 * A recovery needs no agreement, so the owner before it goes on until it looks. Nothing else may
 * find a second LIVE copy.
 */
#define may_not_know(n) (RECOVERIES > 0 && (behind[n] || told[n] != HEARD))
#define is_owner_if_live(n) (state[n] != LIVE || owns(n) || may_not_know(n))
#define knows_and_publishes(n) (publishes(n) && !may_not_know(n))
/* An earlier epoch: a recovery was given up. */
#define has_epoch(n, e) (epoch[n] == e || (RECOVERIES > 0 && epoch[n] < e))
#define has_data(n, e) \
    ((state[n] == LIVE && has_epoch(n, e)) || (is_taking(n) && has_epoch(n, e)) || \
     (state[n] == MOVING && (has_epoch(n, e) || epoch[n] == e + 1)))
#define has_last_write(n) ((state[n] == LIVE || in_doubt(n)) && (newest & ~writes[n]) == 0)
#define is_settled(n) \
    (dead[n] || state[n] == NONE || state[n] == GONE || (state[n] == LIVE && owns(n)))
#define stays_clean(n) (!clean[n] || (state[n] == NONE && pulled_epoch[n] == 0))
#define waits_for(n) (!known && dead[n] && told[n] != HEARD)

#define one_publisher \
    (knows_and_publishes(0) + knows_and_publishes(1) + knows_and_publishes(2) <= 1)
#define live_is_owner (is_owner_if_live(0) && is_owner_if_live(1) && is_owner_if_live(2))
#define owner_has_data (!known || reg_owner == NOBODY || has_data(reg_owner, reg_epoch))
#define last_copy_is_kept (deleted || has_last_write(0) || has_last_write(1) || has_last_write(2))
#define no_write_is_lost (!lost_write)
#define one_owner_per_epoch (!two_owners)
#define old_copy_never_wins (!old_has_won)
#define writes_are_kept ((begun & ~(writes[0] | writes[1] | writes[2] | kept)) == 0)
#define stays_deleted(n) (state[n] != LIVE || may_not_know(n))
#define deleted_stays_deleted \
    (!deleted || (stays_deleted(0) && stays_deleted(1) && stays_deleted(2)))
#define clean_stays_clean (stays_clean(0) && stays_clean(1) && stays_clean(2))
/* At the end of a run. A new incarnation waits for a node that is down: see rule 10. */
#define never_stuck \
    (waits_for(0) || waits_for(1) || waits_for(2) || \
     (known && is_settled(0) && is_settled(1) && is_settled(2) && \
      (reg_owner == NOBODY || dead[reg_owner] || state[reg_owner] == LIVE)))

/* Situations that the model must get to; otherwise a property would hold for want of them. */
#define goes_back (is_taking(HOME) && shows(HOME, epoch[HOME]))
#define goes_on (is_taking(2) && peer[2] == 1 && shows(2, epoch[2]))
#define deletion_wins (is_taking(1) && is_deleting(0) && shows(NOBODY, epoch[0]))
#define move_wins (is_taking(1) && is_deleting(0) && shows(1, epoch[0]))
#define swap_outlives_sender (dead[1] && in_flight(0, 0, 1) && shows(0, 0))
#define two_recover (is_recovering(1) && is_recovering(2) && shows(1, epoch[2]))
#define recovered_during_move \
    (is_giving(0) && is_taking(1) && !is_recovering(1) && is_recovering(2) && shows(2, epoch[0]))
#define move_beats_recovery \
    (is_recovering(2) && state[1] == LIVE && recovered[1] == 0 && shows(1, epoch[2]))
#define lost_is_back (state[0] == LIVE && epoch[0] == 0 && shows(0, 1) && is_recovering(1))
#define old_is_first (state[0] == LIVE && epoch[0] == 1 && told[0] == HEARD && !known && \
    is_giving(1) && epoch[1] == 3 && told[1] != HEARD)

/* -DPROPERTY=LIVE_IS_OWNER checks one only; -DPROPERTY=GOES_BACK fails where the volume does. */
#define ONE_PUBLISHER 1
#define LIVE_IS_OWNER 2
#define OWNER_HAS_DATA 3
#define LAST_COPY_IS_KEPT 4
#define NO_WRITE_IS_LOST 5
#define ONE_OWNER_PER_EPOCH 6
#define OLD_COPY_NEVER_WINS 7
#define WRITES_ARE_KEPT 8
#define DELETED_STAYS_DELETED 9
#define CLEAN_STAYS_CLEAN 10
#define NEVER_STUCK 11
#define GOES_BACK 12
#define GOES_ON 13
#define DELETION_WINS 14
#define MOVE_WINS 15
#define SWAP_OUTLIVES_SENDER 16
#define TWO_RECOVER 17
#define RECOVERED_DURING_MOVE 18
#define MOVE_BEATS_RECOVERY 19
#define LOST_IS_BACK 20
#define OLD_IS_FIRST 21
#ifdef PROPERTY
#define checks(p) (PROPERTY == p)
#else
#define checks(p) (p <= NEVER_STUCK)
#endif
#define violated(p) printf("violated: "); printf(#p); printf("\n"); assert(false)

/* ---- the processes ---- */

active [3] proctype node()
{
end:
    do
    :: begin_move(_pid, 0)
    :: begin_move(_pid, 1)
    :: begin_move(_pid, 2)
    :: begin_deletion(_pid)
    :: recover(_pid)
    :: pull(_pid, 0)
    :: pull(_pid, 1)
    :: pull(_pid, 2)
    :: write_incoming(_pid)
    :: send(_pid, is_taking(_pid), peer[_pid], _pid)
    :: send(_pid, is_taking(_pid) && !is_recovering(_pid), peer[_pid], peer[_pid]) /* [6] gives up */
    :: send(_pid, is_recovering(_pid), peer[_pid], RETURN) /* [13] the lost node is back */
    :: send(_pid, is_deleting(_pid), _pid, NOBODY)
#ifndef NEVER_CLOSE
    :: send(_pid, is_giving(_pid), _pid, _pid) /* [6] gives up */
#endif
    :: read_row(_pid)
    :: act(_pid)
    :: look(_pid)
    :: take_snapshot(_pid)
    :: leave(_pid)
    :: announce(_pid)
    :: confirm(_pid, 0)
    :: confirm(_pid, 1)
    :: confirm(_pid, 2)
    :: fail(_pid, crashes, false, false)
    :: fail(_pid, crashes, false, true)
    :: fail(_pid, deaths, true, false)
    :: fail(_pid, deaths, true, true)
#ifdef DROP_EARLY
    :: drop_early(_pid)
#endif
    od
}

active proctype registry()
{
end:
    do
    :: decide(0)
    :: decide(1)
    :: decide(2)
    :: decide(NOBODY)
    :: decide(RETURN)
    :: hear(0)
    :: hear(1)
    :: hear(2)
    od
}

active proctype world()
{
end:
    do
#ifdef PUT_BACK
    :: put_back()
#else
    :: lose_rows()
#endif
    :: calm()
    od
}

/* A guard here becomes executable in exactly the states that violate its property. */
active proctype monitor()
{
end:
    do
    :: checks(ONE_PUBLISHER) && !one_publisher -> violated(ONE_PUBLISHER)
    :: checks(LIVE_IS_OWNER) && !live_is_owner -> violated(LIVE_IS_OWNER)
    :: checks(OWNER_HAS_DATA) && !owner_has_data -> violated(OWNER_HAS_DATA)
    :: checks(LAST_COPY_IS_KEPT) && !last_copy_is_kept -> violated(LAST_COPY_IS_KEPT)
    :: checks(NO_WRITE_IS_LOST) && !no_write_is_lost -> violated(NO_WRITE_IS_LOST)
    :: checks(ONE_OWNER_PER_EPOCH) && !one_owner_per_epoch -> violated(ONE_OWNER_PER_EPOCH)
    :: checks(OLD_COPY_NEVER_WINS) && !old_copy_never_wins -> violated(OLD_COPY_NEVER_WINS)
    :: checks(WRITES_ARE_KEPT) && !writes_are_kept -> violated(WRITES_ARE_KEPT)
    :: checks(DELETED_STAYS_DELETED) && !deleted_stays_deleted -> violated(DELETED_STAYS_DELETED)
    :: checks(CLEAN_STAYS_CLEAN) && !clean_stays_clean -> violated(CLEAN_STAYS_CLEAN)
    :: checks(GOES_BACK) && goes_back -> violated(GOES_BACK)
    :: checks(GOES_ON) && goes_on -> violated(GOES_ON)
    :: checks(DELETION_WINS) && deletion_wins -> violated(DELETION_WINS)
    :: checks(MOVE_WINS) && move_wins -> violated(MOVE_WINS)
    :: checks(SWAP_OUTLIVES_SENDER) && swap_outlives_sender -> violated(SWAP_OUTLIVES_SENDER)
    :: checks(TWO_RECOVER) && two_recover -> violated(TWO_RECOVER)
    :: checks(RECOVERED_DURING_MOVE) && recovered_during_move -> violated(RECOVERED_DURING_MOVE)
    :: checks(MOVE_BEATS_RECOVERY) && move_beats_recovery -> violated(MOVE_BEATS_RECOVERY)
    :: checks(LOST_IS_BACK) && lost_is_back -> violated(LOST_IS_BACK)
    :: checks(OLD_IS_FIRST) && old_is_first -> violated(OLD_IS_FIRST)
    :: timeout -> break
    od;
    if
    :: checks(NEVER_STUCK) && !never_stuck -> violated(NEVER_STUCK)
    :: else
    fi
}
