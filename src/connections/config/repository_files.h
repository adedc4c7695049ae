/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of repository files: DIR/NAME.yaml describes the repository NAME. Files are read
 * when they are needed, so changes take effect at once.
 *
 *     url: file:///srv/backup           # or s3://HOST[:PORT]/BUCKET[/PREFIX], or node://NODE/NAME
 *     key-file: backup.key              # beside this file, or absolute; none: not encrypted
 *     encrypted: true                   # false: there is no key
 *     credentials-file: backup.s3       # for S3
 *     authorities-file: ca.pem          # for S3; default: those of the system
 *     region: us-east-1                 # for S3
 *     plain-http: false                 # for S3 in a test
 *     shared: false                     # other nodes may use it; for file:// in a cluster
 *     drill: {every: 24h, command: /usr/local/bin/check}
 */
#ifndef CONNECTIONS_CONFIG_REPOSITORY_FILES_H
#define CONNECTIONS_CONFIG_REPOSITORY_FILES_H

#include "volumes/repository_pool.h"

/* `directory` must outlive them. INVALID_ARGUMENT: it is no directory. */
MUST_CHECK struct error *repository_files_open(const char *directory,
                                               struct repository_places *out);

#endif
