/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PCI address as an operator writes it, as the part of a link below /sys/dev/block that a device
 * behind it has.
 */
#ifndef OIM_PCI_ADDRESS_H
#define OIM_PCI_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * [DOMAIN:]BUS:DEVICE.FUNCTION, all hexadecimal, where each may be left out: "0000:00:15.0",
 * "00:15.0", "00:15.", ":.3".
 *
 * `out` becomes the longest run of what is known, in the kernel's form: "/0000:00:15.0/" of the
 * first two (the domain is 0 if the bus is known), "/0000:00:15." and ".3/" of the others. Slashes
 * stand where the address ends, so that a bridge or another function is not taken for it.
 * `is_whole`: nothing was left out but the domain.
 *
 * INVALID_ARGUMENT: it is no such address, leaves all but the domain out, or leaves a gap
 * ("0000::.1") between what it says.
 */
MUST_CHECK struct error *pci_address_to_link_part(const char *text, char *out, size_t size,
                                                  bool *is_whole);

#endif
