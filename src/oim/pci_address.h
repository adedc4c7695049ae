/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a PCI address, as an operator writes it, into the part that the link of its block device
 * below /sys/dev/block has.
 */
#ifndef OIM_PCI_ADDRESS_H
#define OIM_PCI_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * The text is [DOMAIN:]BUS:DEVICE.FUNCTION in hexadecimal; each field may be empty: "0000:00:15.0",
 * "00:15.0", "00:15.", ":.3".
 *
 * `out` becomes the known fields in the kernel's form: "/0000:00:15.0/" for the first two (the
 * domain is 0 if the bus is known), "/0000:00:15." and ".3/" for the others. A slash marks the end
 * of the address, so that it does not match a bridge or another function. `is_whole`: only the
 * domain may be missing.
 *
 * INVALID_ARGUMENT: not a PCI address, only a domain, or an empty field between others
 * ("0000::.1").
 */
MUST_CHECK struct error *pci_address_to_link_part(const char *text, char *out, size_t size,
                                                  bool *is_whole);

#endif
