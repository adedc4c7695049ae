/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the repository's key: "skycap-repository-key-1 BASE64\n". */
#ifndef REPOSITORY_KEY_FILE_H
#define REPOSITORY_KEY_FILE_H

#include "repository/sealing.h"

/* INVALID_ARGUMENT: it holds no key. */
MUST_CHECK struct error *key_file_read(const char *path, uint8_t key[SEALING_KEY_BYTES]);

/* Makes a file with a new key, for its owner alone. ALREADY_EXISTS. */
MUST_CHECK struct error *key_file_make(const char *path);

/*
 * FAILED_PRECONDITION with advice if others than the owner of the file may open it. A file that is
 * not there is fine.
 */
MUST_CHECK struct error *key_file_check_private(const char *path);

/* Wipes the bytes and frees them. For `struct buffer b AUTO(key_file_wipe) = {0}`. */
void key_file_wipe(struct buffer *buffer);

#endif
