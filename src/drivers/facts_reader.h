/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a CSI driver what it can do. */
#ifndef DRIVERS_FACTS_READER_H
#define DRIVERS_FACTS_READER_H

#include "drivers/driver.h"

/* One call, of the Node service or of another. Sets `reply`, a pointer to the method's output. */
typedef struct error *facts_reader_ask(void *context, bool is_node, const struct method *method,
                                       const ProtobufCMessage *request, void *reply);

/*
 * Sets everything but whether the driver is ready. The facts get copies of the texts. After an
 * error they hold what was learned before it, and what was known already.
 */
MUST_CHECK struct error *facts_reader_run(facts_reader_ask *ask, void *context,
                                          struct driver_facts *facts);

#endif
