/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: names that skycap makes for data. They sort by the time of their making, so a list by handle is a list by age. */
#ifndef VOLUMES_HANDLE_H
#define VOLUMES_HANDLE_H

#include "backends/backend.h"

/* Milliseconds and 64 random bits, as 23 letters and digits. */
void handle_make(char out[BACKEND_HANDLE_SIZE]);

#endif
