/* SPDX-License-Identifier: Apache-2.0 */
/* PCI addresses: see pci_address.h. */
#include "oim/pci_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN (-1)

struct pci_address {
    long domain;
    long bus;
    long device;
    long function;
};

/* Reads a number that ends with `mark`, and moves `*text` past it. False: it is not valid. */
static bool
read_field(const char **text, char mark, size_t most_digits, long limit, long *out)
{
    size_t digits = strspn(*text, "0123456789abcdefABCDEF");
    if (digits > most_digits || (*text)[digits] != mark)
        return false;
    *out = digits ? strtol(*text, NULL, 16) : UNKNOWN;
    *text += digits + (mark ? 1 : 0);
    return *out <= limit;
}

static bool
read_address(const char *text, struct pci_address *out)
{
    const char *first_colon = strchr(text, ':');
    bool has_domain = first_colon && strchr(first_colon + 1, ':');
    out->domain = UNKNOWN;
    return (!has_domain || read_field(&text, ':', 4, 0xffff, &out->domain)) &&
           read_field(&text, ':', 2, 0xff, &out->bus) &&
           read_field(&text, '.', 2, 0x1f, &out->device) &&
           read_field(&text, '\0', 1, 7, &out->function);
}

/* Whether an unknown field is between known ones. */
static bool
has_gap(const struct pci_address *address)
{
    const long fields[] = {address->domain, address->bus, address->device, address->function};
    int runs = 0;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        runs += fields[i] != UNKNOWN && (i == 0 || fields[i - 1] == UNKNOWN);
    return runs > 1;
}

static void
print_link_part(const struct pci_address *address, char *out, size_t size)
{
    char domain[8] = "", bus[8] = "", device[8] = "", function[8] = "";
    if (address->domain != UNKNOWN)
        snprintf(domain, sizeof domain, "/%04lx", (unsigned long)address->domain & 0xffff);
    if (address->bus != UNKNOWN)
        snprintf(bus, sizeof bus, ":%02lx", (unsigned long)address->bus & 0xff);
    if (address->device != UNKNOWN)
        snprintf(device, sizeof device, ":%02lx.", (unsigned long)address->device & 0x1f);
    if (address->function != UNKNOWN)
        snprintf(function, sizeof function, "%s%lx/", device[0] ? "" : ".",
                 (unsigned long)address->function & 7);
    snprintf(out, size, "%s%s%s%s%s", domain, bus, bus[0] && !device[0] ? ":" : "", device,
             function);
}

struct error *
pci_address_to_link_part(const char *text, char *out, size_t size, bool *is_whole)
{
    struct pci_address address;
    if (!read_address(text, &address))
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" is no PCI address: give it as 0000:00:15.0, or a part like 00:15.",
                         text);
    if (address.bus != UNKNOWN && address.domain == UNKNOWN)
        address.domain = 0;
    if (has_gap(&address))
        return error_new(CODE_INVALID_ARGUMENT,
                         "the PCI address \"%s\" leaves something out in the middle", text);
    if (address.bus == UNKNOWN && address.device == UNKNOWN && address.function == UNKNOWN)
        return error_new(CODE_INVALID_ARGUMENT, "the PCI address \"%s\" leaves everything out",
                         text);
    print_link_part(&address, out, size);
    *is_whole = address.bus != UNKNOWN && address.device != UNKNOWN && address.function != UNKNOWN;
    return NULL;
}
