/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: the names that skycap gives to data. They sort by creation time, so a list by handle is
 * a list by age.
 */
#ifndef VOLUMES_HANDLE_H
#define VOLUMES_HANDLE_H

#include "volumes/engine.h"

/*
 * A time in milliseconds and 64 random bits, as 23 letters and digits; in a cluster also the home,
 * 8 more. A handle is never older than the engine or than any earlier handle, even if the system
 * clock goes back. So data older than the engine is nothing that this engine is creating.
 */
void handle_make(const struct engine *engine, char out[BACKEND_HANDLE_SIZE]);

/* The same, for data in one of the engine's back ends (backend_open_several). */
void handle_make_for(const struct engine *engine, const struct backend *home,
                     char out[BACKEND_HANDLE_SIZE]);

/*
 * The home of a node: a hash of its id, 40 bits. The handles of a cluster contain that of the node
 * that made them, so that every node knows where to ask.
 */
void handle_print_home(const char *node_id, char out[HANDLE_HOME_SIZE]);

/*
 * Marks a new handle: the node was chosen from several, and the choice is stored elsewhere
 * (connections/forward/choice_rows.h). Only then does the deletion of the volume look for it.
 */
void handle_mark_choice(char handle[BACKEND_HANDLE_SIZE]);
bool handle_has_choice(const char *handle);

/* The home in a handle. False: it has none, because its node was not in a cluster. */
bool handle_read_home(const char *handle, char out[HANDLE_HOME_SIZE]);
/* The home in a key (move_keys.h). False: it has none. */
bool handle_read_key(const char *key, char out[HANDLE_HOME_SIZE]);

/* The smallest handle that can be made at this time or later. */
void handle_print_least(uint64_t time_ms, char out[BACKEND_HANDLE_SIZE]);

/* The time in a handle; 0 if the handle is not one of ours. */
uint64_t handle_read_time(const char *handle);

/*
 * The engine has its own clock. It starts at the system's time, or just after the newest handle if
 * that is later, and never goes back.
 */
void handle_start_clock(struct engine *engine, uint64_t newest_ms);
uint64_t handle_now_ms(const struct engine *engine);

#endif
