/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a runtime, for rpc/ only. */
#ifndef RPC_RUNTIME_INTERNAL_H
#define RPC_RUNTIME_INTERNAL_H

#include "rpc/loop.h"
#include "rpc/metrics.h"
#include "rpc/runtime.h"

struct loop *runtime_loop(struct runtime *runtime);
struct metrics *runtime_metrics(struct runtime *runtime);

#endif
