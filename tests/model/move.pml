/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of moving and deleting a volume, for spin. docs/cluster.md states the protocol in words;
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
 *
 * Publishing and writing have no steps. A LIVE volume counts as published and as written to, since
 * both may happen at any time.
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
#ifndef DEATHS
#define DEATHS 1 /* crashes of nodes that do not come back */
#endif
#ifndef LOSSES
#define LOSSES 2 /* of all rows of the registry */
#endif

#define HOME 0   /* the node that made the volume */
#define NOBODY 3 /* the owner of a deleted volume, and the target of a deletion */
#define UNREAD 4
#define EPOCHS (MOVES + DELETIONS + 1)

/* [1] The row of the volume in a node's store. It is durable. */
mtype = { NONE, LIVE, MOVING, INCOMING, GONE };
mtype state[3] = { LIVE, NONE, NONE }; /* by node */
byte epoch[3]; /* LIVE, GONE: the decided one. MOVING, INCOMING: the one to be decided. */
byte peer[3];  /* MOVING: the target. INCOMING: the source. */

/* What a node has in memory. */
byte pulled_epoch[3]; /* of the transfer that runs, or has ended; 0: none */
byte pulled_from[3];
byte seen_owner[3] = UNREAD; /* an answer of the registry that the node has yet to act on */
byte seen_epoch[3];

/* The registry. */
bool known = true; /* this incarnation has settled who owns the volume */
byte reg_owner = HOME, reg_epoch = 0;

/* Swaps in flight. The one from (s, e) to (w, e + 1) is a bit of sent[e]. */
short sent[EPOCHS];

/* Announcements to a new incarnation: the row as it was when the node sent it. */
mtype = { UNSENT, SENT, HEARD };
mtype told[3] = UNSENT;
mtype word_state[3] = NONE;
byte word_epoch[3];

/* What users and faults may still do. */
byte moves = MOVES, deletions = DELETIONS, crashes = CRASHES;
byte deaths = DEATHS, losses = LOSSES;
bool dead[3];

/* Only for the properties. */
byte written = 0;        /* the last epoch in which a node was LIVE */
bool lost_write = false; /* a node became LIVE without the data of the epoch before */
bool deleted = false;    /* a deletion was answered */
bool clean[3];           /* the node has said, after the deletion, that it has nothing */

/* For one step only; 0 between steps. */
byte pick, pick_rank, pick_epoch;

#define up(n) (!dead[n])
#define in_doubt(n) (state[n] == MOVING || state[n] == INCOMING)
#define is_giving(n) (state[n] == MOVING && peer[n] != NOBODY)
#define is_deleting(n) (state[n] == MOVING && peer[n] == NOBODY)
#define is_taking(n) (state[n] == INCOMING)
#define swap(s, w) (1 << ((s) * 4 + (w)))
#define in_flight(s, e, w) ((sent[e] & swap(s, w)) != 0)
#define shows(s, e) (known && reg_owner == (s) && reg_epoch == (e))

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
            peer[s] == n && may_pull(s) ->
        pulled_epoch[n] = epoch[s];
        pulled_from[n] = s;
        printf("node %d: pulls the data from node %d for epoch %d\n", n, s, epoch[s])
    }
}

inline write_incoming(n)
{
    d_step {
        up(n) && pulled_epoch[n] != 0 ->
        state[n] = INCOMING;
        epoch[n] = pulled_epoch[n];
        peer[n] = pulled_from[n];
        pulled_epoch[n] = 0;
        pulled_from[n] = 0;
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
        up(n) && may && shows(s, epoch[n] - 1) && !in_flight(s, epoch[n] - 1, w) ->
        sent[epoch[n] - 1] = sent[epoch[n] - 1] | swap(s, w);
        printf("node %d: sends the swap (%d, %d) -> (%d, %d)\n", n, s, epoch[n] - 1, w, epoch[n])
    }
}

inline decide(w)
{
    d_step {
        known && reg_owner != NOBODY && in_flight(reg_owner, reg_epoch, w) ->
        printf("registry: swaps (%d, %d) -> (%d, %d)\n", reg_owner, reg_epoch, w, reg_epoch + 1);
#ifndef ACCEPT_OLD_SWAPS
        sent[reg_epoch] = 0; /* None of these can succeed any more. */
#endif
        reg_owner = w;
        reg_epoch++
    }
}

#ifdef IGNORE_EPOCH
#define is_decided(n) (true)
#define is_mine(n) (seen_owner[n] == n)
#else
#define is_decided(n) (reg_epoch >= epoch[n])
#define is_mine(n) (seen_owner[n] == n && seen_epoch[n] == epoch[n])
#endif
#define is_my_deletion(n) \
    (is_deleting(n) && seen_owner[n] == NOBODY && seen_epoch[n] == epoch[n])

/* [5] A read that shows an older epoch says nothing, and the node does nothing. */
inline read_row(n)
{
    d_step {
        up(n) && known && in_doubt(n) && seen_owner[n] == UNREAD && is_decided(n) ->
        seen_owner[n] = reg_owner;
        seen_epoch[n] = reg_epoch;
        printf("node %d: reads (%d, %d)\n", n, reg_owner, reg_epoch)
    }
}

inline forget_read(n)
{
    seen_owner[n] = UNREAD;
    seen_epoch[n] = 0
}

inline drop(n)
{
    state[n] = NONE;
    epoch[n] = 0;
    peer[n] = 0
}

inline act(n)
{
    d_step {
        up(n) && seen_owner[n] != UNREAD ->
        if
        :: is_mine(n) ->
            lost_write = lost_write || written != epoch[n] - 1;
            written = epoch[n];
            state[n] = LIVE;
            peer[n] = 0;
            printf("node %d: writes LIVE, epoch %d\n", n, epoch[n])
        :: is_my_deletion(n) ->
            printf("node %d: writes GONE, epoch %d, and removes its copy\n", n, epoch[n]);
            deleted = true;
#ifdef KEEP_NO_TOMBSTONE
            drop(n)
#else
            state[n] = GONE;
            peer[n] = 0
#endif
        :: else ->
            drop(n);
            printf("node %d: removes its copy\n", n)
        fi;
        forget_read(n)
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
#define is_announced(n) (state[n] != LIVE || epoch[n] > 0)
#endif
#define has_changed(n) (is_announced(n) && (word_state[n] != state[n] || word_epoch[n] != epoch[n]))

inline announce(n)
{
    d_step {
        up(n) && !known && (told[n] == UNSENT || (told[n] == SENT && has_changed(n))) ->
        told[n] = SENT;
        if
        :: is_announced(n) ->
            word_state[n] = state[n];
            word_epoch[n] = epoch[n]
        :: else ->
            word_state[n] = NONE;
            word_epoch[n] = 0
        fi;
#ifndef KEEP_READ
        forget_read(n); /* [8] Another incarnation gave that answer. */
#endif
        printf("node %d: announces %e, epoch %d\n", n, word_state[n], word_epoch[n])
    }
}

inline clear_announcement(n)
{
#ifdef ACCEPT_OLD_ANNOUNCEMENTS
    told[n] = (told[n] == UNSENT -> UNSENT : SENT)
#else
    told[n] = UNSENT;
    word_state[n] = NONE;
    word_epoch[n] = 0
#endif
}

inline clear_announcements()
{
    clear_announcement(0); clear_announcement(1); clear_announcement(2)
}

inline settle(o, e)
{
    known = true;
    reg_owner = o;
    reg_epoch = e;
    printf("registry: settles (%d, %d)\n", reg_owner, reg_epoch);
    clear_announcements()
}

#ifdef OLD_COPY_WINS
#define incoming_rank(n) (2 * word_epoch[n] + 2)
#else
#define incoming_rank(n) (2 * word_epoch[n])
#endif

/* [10] The highest epoch wins. At the same epoch INCOMING wins over MOVING. */
inline consider(n)
{
    if
    :: word_state[n] == MOVING && 2 * word_epoch[n] - 1 > pick_rank ->
        pick = n;
        pick_rank = 2 * word_epoch[n] - 1;
        pick_epoch = word_epoch[n] - 1
    :: word_state[n] == INCOMING && incoming_rank(n) > pick_rank ->
        pick = n;
        pick_rank = incoming_rank(n);
        pick_epoch = word_epoch[n]
    :: else
    fi
}

#ifdef SETTLE_FIRST
#define is_complete(n) (word_state[n] != NONE)
#else
#define is_complete(n) (told[0] == HEARD && told[1] == HEARD && told[2] == HEARD)
#endif

inline hear(n)
{
    d_step {
        !known && told[n] == SENT ->
        told[n] = HEARD;
        printf("registry: hears node %d\n", n);
        if
        :: word_state[n] == LIVE -> settle(n, word_epoch[n])
        :: word_state[n] == GONE -> settle(NOBODY, word_epoch[n])
        :: word_state[n] != LIVE && word_state[n] != GONE && is_complete(n) ->
            pick = HOME;
            consider(0); consider(1); consider(2);
            settle(pick, pick_epoch);
            pick = 0;
            pick_rank = 0;
            pick_epoch = 0
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
        clear_announcements()
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
        pulled_epoch[n] = 0;
        pulled_from[n] = 0;
        forget_read(n);
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
        moves + deletions + crashes + deaths + losses > 0 ->
        moves = 0;
        deletions = 0;
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
#define is_owner_if_live(n) (state[n] != LIVE || owns(n))
#define has_data(n, e) \
    ((state[n] == LIVE && epoch[n] == e) || (is_taking(n) && epoch[n] == e) || \
     (state[n] == MOVING && (epoch[n] == e || epoch[n] == e + 1)))
#define has_last_write(n) \
    ((state[n] == LIVE && epoch[n] == written) || (in_doubt(n) && epoch[n] == written + 1))
#define is_settled(n) \
    (dead[n] || state[n] == NONE || state[n] == GONE || (state[n] == LIVE && owns(n)))
#define stays_clean(n) (!clean[n] || (state[n] == NONE && pulled_epoch[n] == 0))
#define waits_for(n) (!known && dead[n] && told[n] != HEARD)

#define one_publisher (publishes(0) + publishes(1) + publishes(2) <= 1)
#define live_is_owner (is_owner_if_live(0) && is_owner_if_live(1) && is_owner_if_live(2))
#define owner_has_data (!known || reg_owner == NOBODY || has_data(reg_owner, reg_epoch))
#define last_copy_is_kept (deleted || has_last_write(0) || has_last_write(1) || has_last_write(2))
#define no_write_is_lost (!lost_write)
#define deleted_stays_deleted \
    (!deleted || (state[0] != LIVE && state[1] != LIVE && state[2] != LIVE))
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

/* -DPROPERTY=LIVE_IS_OWNER checks one only; -DPROPERTY=GOES_BACK fails where the volume does. */
#define ONE_PUBLISHER 1
#define LIVE_IS_OWNER 2
#define OWNER_HAS_DATA 3
#define LAST_COPY_IS_KEPT 4
#define NO_WRITE_IS_LOST 5
#define DELETED_STAYS_DELETED 6
#define CLEAN_STAYS_CLEAN 7
#define NEVER_STUCK 8
#define GOES_BACK 9
#define GOES_ON 10
#define DELETION_WINS 11
#define MOVE_WINS 12
#define SWAP_OUTLIVES_SENDER 13
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
    :: pull(_pid, 0)
    :: pull(_pid, 1)
    :: pull(_pid, 2)
    :: write_incoming(_pid)
    :: send(_pid, is_taking(_pid), peer[_pid], _pid)
    :: send(_pid, is_taking(_pid), peer[_pid], peer[_pid]) /* [6] gives up */
    :: send(_pid, is_deleting(_pid), _pid, NOBODY)
#ifndef NEVER_CLOSE
    :: send(_pid, is_giving(_pid), _pid, _pid) /* [6] gives up */
#endif
    :: read_row(_pid)
    :: act(_pid)
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
    :: checks(DELETED_STAYS_DELETED) && !deleted_stays_deleted -> violated(DELETED_STAYS_DELETED)
    :: checks(CLEAN_STAYS_CLEAN) && !clean_stays_clean -> violated(CLEAN_STAYS_CLEAN)
    :: checks(GOES_BACK) && goes_back -> violated(GOES_BACK)
    :: checks(GOES_ON) && goes_on -> violated(GOES_ON)
    :: checks(DELETION_WINS) && deletion_wins -> violated(DELETION_WINS)
    :: checks(MOVE_WINS) && move_wins -> violated(MOVE_WINS)
    :: checks(SWAP_OUTLIVES_SENDER) && swap_outlives_sender -> violated(SWAP_OUTLIVES_SENDER)
    :: timeout -> break
    od;
    if
    :: checks(NEVER_STUCK) && !never_stuck -> violated(NEVER_STUCK)
    :: else
    fi
}
