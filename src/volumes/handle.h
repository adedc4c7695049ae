/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: names that skycap makes for data. They sort by the time of their making, so a list by
 * handle is a list by age.
 */
#ifndef VOLUMES_HANDLE_H
#define VOLUMES_HANDLE_H

#include "volumes/engine.h"

/*
 * Milliseconds and 64 random bits, as 23 letters and digits. Never older than the engine, nor than
 * one that was made before it, whatever the clock does: what is older than the engine is nothing
 * that it is making.
 */
void handle_make(const struct engine *engine, char out[BACKEND_HANDLE_SIZE]);

/* Likewise, for data that one of the engine's back ends is to keep (backend_open_several). */
void handle_make_for(const struct engine *engine, const struct backend *home,
                     char out[BACKEND_HANDLE_SIZE]);

/* The least that a handle made at this time, or later, can be. */
void handle_print_least(uint64_t time_ms, char out[BACKEND_HANDLE_SIZE]);

/* The time that a handle tells; 0 if it is none of ours. */
uint64_t handle_read_time(const char *handle);

/*
 * The engine's own begins where the machine's is, but behind the newest handle there is, and never
 * goes back.
 */
void handle_start_clock(struct engine *engine, uint64_t newest_ms);
uint64_t handle_now_ms(const struct engine *engine);

#endif
