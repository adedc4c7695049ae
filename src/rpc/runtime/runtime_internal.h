/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the parts of a runtime, for rpc/ only. */
#ifndef RPC_RUNTIME_RUNTIME_INTERNAL_H
#define RPC_RUNTIME_RUNTIME_INTERNAL_H

#include "rpc/loop/loop.h"
#include "rpc/runtime/metrics.h"
#include "rpc/runtime/runtime.h"

struct loop *runtime_loop(struct runtime *runtime);
struct metrics *runtime_metrics(struct runtime *runtime);

#endif
