/* SPDX-License-Identifier: Apache-2.0 */
/* Mount flags of a capability, one by one. */
#include "base/buffer.h"
#include "check.h"
#include "node/use.h"

/* The words of a request, NULL at the end. */
#define WORDS(...) ((const char *[]){__VA_ARGS__, NULL})

/* The flags with | between them; and whether they say read only. */
static void
check_flags(const char **words, const char *expected, bool is_read_only)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct buffer found AUTO(buffer_clear) = {0};
    Csi__V1__VolumeCapability__MountVolume mount = CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
    Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
    volume_capability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
    mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability.access_mode = &mode;
    capability.mount = &mount;
    mount.mount_flags = (char **)words;
    while (words[mount.n_mount_flags])
        mount.n_mount_flags++;
    for (const char *const *flag = capability_mount_flags(&capability, &arena); *flag; flag++)
        buffer_print(&found, "%s|", *flag);
    CHECK_TEXT(buffer_text(&found), expected);
    CHECK_NUMBER(capability_is_read_only(&capability), is_read_only);
}

static void
words_are_split_at_commas(void)
{
    check_flags((const char *[]){NULL}, "", false);
    check_flags(WORDS("noatime"), "noatime|", false);
    check_flags(WORDS("ro,discard"), "ro|discard|", true);
    check_flags(WORDS("discard,ro"), "discard|ro|", true);
    check_flags(WORDS("nodev", "ro,discard", "nosuid"), "nodev|ro|discard|nosuid|", true);
    check_flags(WORDS("", ",", ",ro,,discard,", ""), "ro|discard|", true);
}

static void
of_ro_and_rw_the_last_counts(void)
{
    check_flags(WORDS("ro", "rw"), "ro|rw|", false);
    check_flags(WORDS("rw", "ro"), "rw|ro|", true);
    check_flags(WORDS("ro,rw"), "ro|rw|", false);
    check_flags(WORDS("ro", "rw,ro"), "ro|rw|ro|", true);
    check_flags(WORDS("errors=remount-ro", "norecovery"), "errors=remount-ro|norecovery|", false);
}

static void
what_is_quoted_stays_whole(void)
{
    check_flags(WORDS("context=\"a:b:c0,ro\",discard"), "context=\"a:b:c0,ro\"|discard|", false);
    check_flags(WORDS("context=\"a:b:c0,ro"), "context=\"a:b:c0,ro|", false); /* nor does it end */
}

int
main(void)
{
    words_are_split_at_commas();
    of_ro_and_rw_the_last_counts();
    what_is_quoted_stays_whole();
    return check_report("mount_flags");
}
