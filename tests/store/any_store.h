/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens whatever store a URL names, for programs of tests. A store on etcd or a registry is reached with TLS if STORE_CA, STORE_CERT and STORE_KEY
 * (names of files) are in the environment.
 */
#ifndef STORE_ANY_STORE_H
#define STORE_ANY_STORE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/runtime/runtime.h"
#include "rpc/tls/tls.h"
#include "store/store.h"

struct any_store {
    struct store *store;
    struct runtime *runtime;
    struct tls_context *tls;
};

static inline struct error *
any_store_open(const char *url, struct any_store *out)
{
    static const struct log log = {.fd = STDERR_FILENO, .level = LOG_ERROR};
    const struct tls_options files = {getenv("STORE_CA"), getenv("STORE_CERT"),
                                      getenv("STORE_KEY")};
    if (strncmp(url, "etcd:", 5) != 0 && strncmp(url, "registry:", 9) != 0)
        return store_open(url, NULL, &out->store);
    struct error *error = runtime_open(&(struct runtime_options){.log = &log}, &out->runtime);
    if (!error && files.ca_file)
        error = tls_context_open(&files, &out->tls);
    if (!error)
        error = store_open(url, &(struct store_options){out->runtime, out->tls}, &out->store);
    return error;
}

static inline void
any_store_close(struct any_store *opened)
{
    store_close(opened->store);
    if (opened->runtime)
        runtime_close(opened->runtime);
    tls_context_close(opened->tls);
}

#endif
