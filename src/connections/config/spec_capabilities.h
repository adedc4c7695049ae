/* SPDX-License-Identifier: Apache-2.0 */
/* The key `capabilities` of a connection file: what its driver can do. */
#ifndef CONNECTIONS_CONFIG_SPEC_CAPABILITIES_H
#define CONNECTIONS_CONFIG_SPEC_CAPABILITIES_H

#include "connections/config/spec.h"

/* INVALID_ARGUMENT says which names there are. */
MUST_CHECK struct error *spec_capabilities_read(const struct setting *root, struct arena *arena,
                                                struct connection_spec *spec);

#endif
