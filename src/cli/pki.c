/* SPDX-License-Identifier: Apache-2.0 */
/* skycap pki: a small certificate authority, so that mutual TLS needs no other program. */
#include "pki/pki.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/client.h"
#include "cli/table.h"

#define DEFAULT_DIRECTORY "pki"
#define DEFAULT_AUTHORITY_NAME "skycap CA"
#define AUTHORITY_DAYS 3650
#define DAYS 365
#define DAY_S (24 * 60 * 60)

#define TIME_TEXT_SIZE 32

static const char *
time_text(time_t time, char out[TIME_TEXT_SIZE])
{
    struct tm parts;
    strftime(out, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &parts));
    return out;
}

static void
print_made(const struct pki_made *made)
{
    char until[TIME_TEXT_SIZE];
    printf("wrote %s: keep it secret\n", made->key_file);
    printf("wrote %s, valid until %s\n", made->certificate_file,
           time_text(made->valid_until, until));
}

/* ---- init ---- */

static const char *authority_name = DEFAULT_AUTHORITY_NAME;
static unsigned long authority_days = AUTHORITY_DAYS;

static const struct option init_flags[] = {
    {"name", 0, "NAME", OPTION_TEXT, &authority_name,
     "name of the authority; default \"" DEFAULT_AUTHORITY_NAME "\""},
    {"days", 0, "N", OPTION_NUMBER, &authority_days, "validity in days; default 3650"},
    {0},
};

static struct error *
init(struct client *client)
{
    const char *directory = client->word_count ? client->words[0] : DEFAULT_DIRECTORY;
    struct pki_made made AUTO(pki_clear_made) = {0};
    client->exit_code = EXIT_FAILED;
    struct error *error = pki_make_authority(directory, authority_name, authority_days, &made);
    if (error)
        return error;
    print_made(&made);
    printf("next: skycap pki issue component.registry --pki %s\n", directory);
    return NULL;
}

static const struct command init_command = {
    .name = "init",
    .summary = "create an authority",
    .words = "[DIR]",
    .help = "Creates an authority: DIR/ca.crt, which every peer gets, and DIR/ca.key, which stays "
            "where it is.\nDIR defaults to \"" DEFAULT_DIRECTORY "\". An existing authority is "
            "never replaced.",
    .flags = init_flags,
    .more_flags = COMMAND_NO_FLAGS,
    .run = init,
};

/* ---- issue ---- */

static struct pki_request request = {.authority = DEFAULT_DIRECTORY, .days = DAYS};

static const struct option issue_flags[] = {
    {"pki", 0, "DIR", OPTION_TEXT, &request.authority,
     "directory of the authority; default \"" DEFAULT_DIRECTORY "\""},
    {"out", 0, "DIR", OPTION_TEXT, &request.directory,
     "directory for the new files; default: that of the authority"},
    {"san", 0, "NAME", OPTION_LIST, &request.alternatives,
     "a host name or IP address beside NAME; may be given several times"},
    {"days", 0, "N", OPTION_NUMBER, &request.days, "validity in days; default 365"},
    {"force", 0, NULL, OPTION_FLAG, &request.replaces,
     "replace a certificate and key of that name; running servers take the new ones"},
    {0},
};

/*
 * How names that have rights begin, and what to do with such a certificate. If the text ends with a
 * space, the id goes there.
 */
static const struct {
    const char *form;
    const char *next;
} forms[] = {
    {"component.registry", "skycap serve --roles registry --listen HOST:PORT"},
    {"controller.", "skycap serve --roles oim-controller --registry HOST:PORT --listen HOST:PORT "
                    "--controller-address HOST:PORT --controller-id "},
    {"host.", "skycap call HOST:PORT METHOD --tls-name component.registry --controller "},
    {"node.", "skycap serve --connections DIR --store registry://HOST:PORT --node-id "},
    {"user.", "skycap registry list --endpoint HOST:PORT --tls-name component.registry"},
};

/* The index in `forms`, or COUNT_OF(forms); `*id` is what follows the form's dot. */
static size_t
form_of(const char *name, const char **id)
{
    size_t i;
    for (i = 0; i < COUNT_OF(forms); i++) {
        size_t size = strlen(forms[i].form);
        bool has_id = forms[i].form[size - 1] == '.';
        *id = strncmp(name, forms[i].form, size) == 0 ? name + size : NULL;
        if (*id && has_id == ((*id)[0] != '\0'))
            break;
    }
    return i;
}

static void
print_next(const struct pki_made *made)
{
    const char *id;
    size_t form = form_of(request.name, &id);
    if (form == COUNT_OF(forms)) {
        fprintf(stderr,
                "skycap: warning: \"%s\" is none of component.registry, controller.ID, host.ID, "
                "node.ID and user.NAME: such a name has no rights of its own at a registry\n",
                request.name);
        printf("next: give --tls-ca %s/ca.crt --tls-cert %s --tls-key %s\n", request.authority,
               made->certificate_file, made->key_file);
        return;
    }
    const char *next = forms[form].next;
    printf("next: %s%s --tls-ca %s/ca.crt --tls-cert %s --tls-key %s\n", next,
           next[strlen(next) - 1] == ' ' ? id : "", request.authority, made->certificate_file,
           made->key_file);
}

static struct error *
issue(struct client *client)
{
    struct pki_made made AUTO(pki_clear_made) = {0};
    request.name = client->words[0];
    if (!request.directory)
        request.directory = request.authority;
    client->exit_code = EXIT_FAILED;
    struct error *error = pki_issue(&request, &made);
    if (error && error->code == CODE_ALREADY_EXISTS)
        error = error_wrap(error, "nothing was issued (--force replaces)");
    if (error)
        return error;
    print_made(&made);
    print_next(&made);
    return NULL;
}

static const struct command issue_command = {
    .name = "issue",
    .summary = "create a key and a certificate for one name",
    .words = "NAME",
    .help = "Creates a key and a certificate, NAME.key and NAME.crt, for servers and for clients. "
            "Names that a\nregistry knows: component.registry, controller.ID, host.ID, node.ID, "
            "user.admin, user.NAME.",
    .flags = issue_flags,
    .more_flags = COMMAND_NO_FLAGS,
    .run = issue,
};

/* ---- show ---- */

/* Rounded: a new certificate for 30 days has 30 days left. */
static long long
days_until(time_t time_s)
{
    long long left = (long long)(time_s - time(NULL));
    return (left + (left < 0 ? -DAY_S / 2 : DAY_S / 2)) / DAY_S;
}

static const char *
left_text(time_t until, char out[TIME_TEXT_SIZE])
{
    if (until < time(NULL))
        return "expired";
    snprintf(out, TIME_TEXT_SIZE, "%lld days left", days_until(until));
    return out;
}

static void
print_certificate(const struct pki_certificate *certificate)
{
    char text[TIME_TEXT_SIZE], left[TIME_TEXT_SIZE];
    for (size_t i = 0; i < certificate->names.count; i++)
        table_print_fact("name", certificate->names.items[i]);
    table_print_fact("issuer", certificate->issuer);
    table_print_fact("kind", certificate->is_authority ? "authority" : "peer");
    table_print_fact("serial", certificate->serial);
    table_print_fact("from", time_text(certificate->valid_from, text));
    table_print_fact("until", time_text(certificate->valid_until, text));
    table_print_fact("time", left_text(certificate->valid_until, left));
}

static void
print_json(const struct pki_certificate *certificate)
{
    char text[TIME_TEXT_SIZE];
    struct buffer out AUTO(buffer_clear) = {0};
    buffer_append_text(&out, "{\"names\":[");
    for (size_t i = 0; i < certificate->names.count; i++) {
        const char *name = certificate->names.items[i];
        buffer_append_text(&out, i ? "," : "");
        json_append_string(&out, name, strlen(name));
    }
    buffer_append_byte(&out, ']');
    json_append_member(&out, "issuer", certificate->issuer);
    json_append_member(&out, "serial", certificate->serial);
    json_append_member(&out, "validFrom", time_text(certificate->valid_from, text));
    json_append_member(&out, "validUntil", time_text(certificate->valid_until, text));
    buffer_print(&out, ",\"daysLeft\":%lld,\"authority\":%s}", days_until(certificate->valid_until),
                 certificate->is_authority ? "true" : "false");
    puts(buffer_text(&out));
}

static struct error *
show(struct client *client)
{
    struct pki_certificate certificate AUTO(pki_clear_certificate) = {0};
    client->exit_code = EXIT_FAILED;
    struct error *error = pki_read_certificate(client->words[0], &certificate);
    if (!error && client->as_json)
        print_json(&certificate);
    else if (!error)
        print_certificate(&certificate);
    return error;
}

static const struct command show_command = {
    .name = "show",
    .summary = "show the content of a certificate",
    .words = "FILE",
    .help = "Shows the names in a certificate, who issued it, and how long it is valid.",
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = show,
};

/* ---- all of them ---- */

const struct command pki_command = {
    .name = "pki",
    .summary = "create certificates for mutual TLS",
    .help = "Creates certificates for mutual TLS with a small authority of its own.",
    .below = (const struct command *const[]){&init_command, &issue_command, &show_command, NULL},
    .asking = "",
};
