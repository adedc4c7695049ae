/* SPDX-License-Identifier: Apache-2.0 */
/* The small authority: what it refuses, how long its certificates are valid, which names they have. (tests/system/pki-*.sh ask OpenSSL's own programs.) */
#include "pki/pki.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define DAY ((time_t)24 * 60 * 60)

static char directory[] = "/tmp/test-pki.XXXXXX";
static char authority[64];

static enum code
code_of(struct error *error)
{
    enum code code = error ? error->code : CODE_OK;
    error_free(error);
    return code;
}

static enum code
issue(struct pki_request request)
{
    struct pki_made made AUTO(pki_clear_made) = {0};
    request.authority = authority;
    request.directory = directory;
    if (!request.days)
        request.days = 10;
    return code_of(pki_issue(&request, &made));
}

static struct pki_certificate
certificate_of(const char *name)
{
    char path[512];
    struct pki_certificate certificate = {0};
    snprintf(path, sizeof path, "%s/%s.crt", directory, name);
    CHECK_NUMBER(code_of(pki_read_certificate(path, &certificate)), CODE_OK);
    return certificate;
}

static bool
is_near(time_t time, time_t wanted)
{
    return time >= wanted - 60 && time <= wanted + 60;
}

static void
test_an_authority_is_made_once(void)
{
    struct pki_made made = {0};
    CHECK_NUMBER(code_of(pki_make_authority(authority, "", 30, &made)), CODE_INVALID_ARGUMENT);
    pki_clear_made(&made);
    CHECK_NUMBER(code_of(pki_make_authority(authority, "An authority", 0, &made)),
                 CODE_INVALID_ARGUMENT);
    pki_clear_made(&made);
    CHECK_NUMBER(code_of(pki_make_authority(authority, "An authority", 30, &made)), CODE_OK);
    CHECK(is_near(made.valid_until, time(NULL) + 30 * DAY));
    pki_clear_made(&made);
    CHECK_NUMBER(code_of(pki_make_authority(authority, "Another", 30, &made)), CODE_ALREADY_EXISTS);
    pki_clear_made(&made);
}

static void
test_names_and_times(void)
{
    const char *more[] = {"10.0.0.1", "::1", "host.example", "controller.a"};
    CHECK_NUMBER(issue((struct pki_request){.name = "controller.a", .alternatives = {more, 4}}),
                 CODE_OK);
    struct pki_certificate certificate AUTO(pki_clear_certificate) = certificate_of("controller.a");
    CHECK_NUMBER(certificate.names.count, 4);
    CHECK_TEXT(certificate.names.items[0], "controller.a");
    CHECK_TEXT(certificate.names.items[1], "10.0.0.1");
    CHECK_TEXT(certificate.names.items[2], "::1");
    CHECK_TEXT(certificate.names.items[3], "host.example");
    CHECK_TEXT(certificate.issuer, "CN=An authority");
    CHECK(!certificate.is_authority);
    CHECK(is_near(certificate.valid_until, time(NULL) + 10 * DAY));
    CHECK(certificate.valid_from < time(NULL) - 60);
}

static void
test_none_outlives_its_authority(void)
{
    CHECK_NUMBER(issue((struct pki_request){.name = "long", .days = 1000}), CODE_OK);
    struct pki_certificate certificate AUTO(pki_clear_certificate) = certificate_of("long");
    CHECK(is_near(certificate.valid_until, time(NULL) + 30 * DAY));
}

/* Beyond what a common name holds. */
static void
test_long_names_are_kept_whole(void)
{
    char name[222];
    memset(name, 'x', 221);
    memcpy(name, "host.", 5);
    name[221] = '\0';
    CHECK_NUMBER(issue((struct pki_request){.name = name}), CODE_INVALID_ARGUMENT);
    name[220] = '\0';
    CHECK_NUMBER(issue((struct pki_request){.name = name}), CODE_OK);
    struct pki_certificate certificate AUTO(pki_clear_certificate) = certificate_of(name);
    CHECK_NUMBER(certificate.names.count, 1);
    CHECK_TEXT(certificate.names.items[0], name);
}

static void
test_bad_requests_are_refused(void)
{
    const char *const names[] = {"",    "ca",  ".hidden", "-flag", "../up", "a/b",
                                 "a b", "a\n", "a,DNS:b", "a:b",   "*.all", "\303\244"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        CHECK_NUMBER(issue((struct pki_request){.name = names[i]}), CODE_INVALID_ARGUMENT);
    const char *bad = "a,IP:1.2.3.4";
    CHECK_NUMBER(issue((struct pki_request){.name = "n", .alternatives = {&bad, 1}}),
                 CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(issue((struct pki_request){.name = "n", .days = PKI_MAX_DAYS + 1}),
                 CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(issue((struct pki_request){.name = "controller.a"}), CODE_ALREADY_EXISTS);
}

static void
test_replacing_makes_a_new_one(void)
{
    struct pki_certificate before AUTO(pki_clear_certificate) = certificate_of("controller.a");
    CHECK_NUMBER(issue((struct pki_request){.name = "controller.a", .replaces = true}), CODE_OK);
    struct pki_certificate after AUTO(pki_clear_certificate) = certificate_of("controller.a");
    CHECK(strcmp(before.serial, after.serial) != 0);
    CHECK_NUMBER(strlen(after.serial), 32);
}

/* Only an authority issues, and only with its own key. */
static void
test_a_peer_is_no_authority(void)
{
    char from[128], to[128];
    struct pki_made made AUTO(pki_clear_made) = {0};
    struct pki_request request = {
        .authority = directory, .directory = directory, .name = "other", .days = 1};
    CHECK_NUMBER(code_of(pki_issue(&request, &made)), CODE_NOT_FOUND);
    pki_clear_made(&made);
    const char *const endings[] = {"crt", "key"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/controller.a.%s", directory, endings[i]);
        snprintf(to, sizeof to, "%s/ca.%s", directory, endings[i]);
        CHECK(link(from, to) == 0);
    }
    CHECK_NUMBER(code_of(pki_issue(&request, &made)), CODE_FAILED_PRECONDITION);
    pki_clear_made(&made);
    CHECK(unlink(to) == 0);
    snprintf(from, sizeof from, "%s/ca.key", authority);
    CHECK(link(from, to) == 0);
    CHECK_NUMBER(code_of(pki_issue(&request, &made)), CODE_FAILED_PRECONDITION);
}

static void
remove_all(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    CHECK_NUMBER(system(command), 0);
}

int
main(void)
{
    if (!mkdtemp(directory))
        return 1;
    snprintf(authority, sizeof authority, "%s/authority", directory);
    test_an_authority_is_made_once();
    test_names_and_times();
    test_none_outlives_its_authority();
    test_long_names_are_kept_whole();
    test_bad_requests_are_refused();
    test_replacing_makes_a_new_one();
    test_a_peer_is_no_authority();
    remove_all();
    return check_report("pki");
}
