/* SPDX-License-Identifier: Apache-2.0 */
/* PCI addresses that operators write, and the parts of links that come of them. */
#include "oim/pci_address.h"

#include "check.h"

static void
check_part(const char *text, const char *wanted, bool is_whole)
{
    char part[64];
    bool got_whole = !is_whole;
    struct error *error AUTO(error_cleanup) =
        pci_address_to_link_part(text, part, sizeof part, &got_whole);
    CHECK_TEXT(error ? error->message : part, wanted);
    CHECK(got_whole == is_whole);
}

static void
check_refused(const char *text)
{
    char part[64];
    bool is_whole;
    struct error *error AUTO(error_cleanup) =
        pci_address_to_link_part(text, part, sizeof part, &is_whole);
    CHECK(error && error->code == CODE_INVALID_ARGUMENT && strstr(error->message, text));
}

/* The part is in the link of a disk behind the function, whatever bridges are before it, and not in those of its neighbours. */
static void
check_fits(const char *text, const char *link, bool fits)
{
    char part[64];
    bool is_whole;
    struct error *error AUTO(error_cleanup) =
        pci_address_to_link_part(text, part, sizeof part, &is_whole);
    CHECK(!error && !strstr(link, part) == !fits);
}

int
main(void)
{
    check_part("0000:00:15.0", "/0000:00:15.0/", true);
    check_part("0000:00:1F.7", "/0000:00:1f.7/", true);
    check_part("ffff:ff:1f.7", "/ffff:ff:1f.7/", true);
    check_part("00:15.0", "/0000:00:15.0/", true);
    check_part(":00:15.0", "/0000:00:15.0/", true);
    check_part("0:5.1", "/0000:00:05.1/", true);
    check_part("1:00:5.1", "/0001:00:05.1/", true);
    check_part("00:15.", "/0000:00:15.", false);
    check_part("00:.", "/0000:00:", false);
    check_part(":15.0", ":15.0/", false);
    check_part(":15.", ":15.", false);
    check_part(":.3", ".3/", false);
    check_part("::.3", ".3/", false);

    static const char *const bad[] = {
        "10000:00:15.0", "",         "x",        "00",         "00:15",   ":.",       "::.",
        "0000::.",       "00:.3",    "0000::.3", "0000::15.0", "00:20.0", "00:15.8",  "000:1.0",
        "00:015.0",      "00:15.00", " 00:15.",  "00:15.0 ",   "00:g.0",  "0:0:0:0.0"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_refused(bad[i]);

    const char *direct =
        "../../devices/pci0000:00/0000:00:15.0/virtio3/host2/target2:0:7/2:0:7:0/block/sda";
    const char *behind = "../../devices/pci0000:00/0000:00:02.0/0000:01:15.0/virtio3/block/vda";
    check_fits("0000:00:15.0", direct, true);
    check_fits("00:15.", direct, true);
    check_fits(":15.", direct, true);
    check_fits("00:15.1", direct, false);
    check_fits("00:5.0", direct, false);
    check_fits("01:15.0", behind, true);
    check_fits("00:15.0", behind, false);
    return check_report("pci_address");
}
