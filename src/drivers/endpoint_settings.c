/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of endpoints: see endpoint_settings.h. */
#include "drivers/endpoint_settings.h"

#include <stdlib.h>

#include "base/memory.h"
#include "rpc/http2/address.h"

static const char *
copy_text(struct arena *arena, const char *text)
{
    return text ? arena_string(arena, text) : NULL;
}

struct error *
endpoint_settings_read_tls(const struct setting *settings, struct arena *arena,
                           struct endpoint_tls *out)
{
    static const char *const known[] = {"ca", "certificate", "key", "name", NULL};
    const struct setting *tls = NULL;
    struct tls_options *files = &out->files;
    struct error *error = settings_read_part(settings, "tls", SETTING_MAP, &tls);
    if (error || !tls)
        return error;
    out->is_given = true;
    error = settings_check_keys(tls, known);
    if (!error)
        error = settings_read_text(tls, "ca", &files->ca_file);
    if (!error)
        error = settings_read_text(tls, "certificate", &files->certificate_file);
    if (!error)
        error = settings_read_text(tls, "key", &files->key_file);
    if (!error)
        error = settings_read_text(tls, "name", &out->name);
    for (size_t i = 0; i < 3 && !error; i++) {
        if (!settings_find(tls, known[i]))
            error = settings_refuse(tls, "%s is missing: the path of a file", known[i]);
    }
    files->ca_file = copy_text(arena, files->ca_file);
    files->certificate_file = copy_text(arena, files->certificate_file);
    files->key_file = copy_text(arena, files->key_file);
    out->name = copy_text(arena, out->name);
    return error;
}

struct error *
endpoint_settings_read_insecure(const struct setting *settings, const struct endpoint_tls *tls,
                                bool *out)
{
    struct error *error = settings_read_flag(settings, "insecure", out);
    if (!error && *out && tls->is_given)
        error = settings_refuse_key(settings, "insecure", "there is `tls:` too; use only one");
    return error;
}

struct error *
endpoint_settings_check(const struct setting *settings, const char *key, bool is_safe, bool *is_tcp)
{
    struct address address;
    const char *text = NULL;
    struct error *error = settings_read_text(settings, key, &text);
    if (error || !text)
        return error;
    struct error *wrong AUTO(error_cleanup) = address_parse(text, &address);
    if (wrong)
        return settings_refuse_key(settings, key, "%s", wrong->message);
    if (address_is_local(&address))
        return NULL;
    *is_tcp = true;
    if (!address.host[0] || !address.port)
        return settings_refuse_key(settings, key, "a host and a port to connect to are missing");
    if (is_safe)
        return NULL;
    return settings_refuse_key(settings, key,
                               "this is a network address: set `tls:` or `insecure: true`");
}

struct error *
endpoint_settings_check_use(const struct setting *settings, bool is_tcp)
{
    bool is_insecure = false;
    struct error *error = settings_read_flag(settings, "insecure", &is_insecure);
    bool has_tls = settings_find(settings, "tls");
    if (error || is_tcp || (!is_insecure && !has_tls))
        return error;
    return settings_refuse_key(settings, has_tls ? "tls" : "insecure",
                               "this needs an endpoint like HOST:PORT");
}

const char *
endpoint_settings_server(const char *endpoint, struct arena *arena)
{
    struct address address;
    struct error *error AUTO(error_cleanup) = address_parse(endpoint, &address);
    if (error)
        return NULL;
    char text[ADDRESS_TEXT_SIZE];
    address_print(&address, text, sizeof text);
    char *real AUTO(memory_cleanup) =
        address.kind == ADDRESS_UNIX ? realpath(address.path, NULL) : NULL;
    return real ? arena_print(arena, "unix:%s", real) : arena_string(arena, text);
}
