/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics that Prometheus' client libraries have for every process: process_*. Any thread. */
#ifndef RPC_RUNTIME_PROCESS_METRICS_H
#define RPC_RUNTIME_PROCESS_METRICS_H

#include "base/buffer.h"

void process_metrics_print(struct buffer *out);

#endif
