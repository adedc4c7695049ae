/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of `skycap serve`: their table, their defaults, and which ones conflict. */
#include "cli/serve_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size_text.h"
#include "csi/controller.h"
#include "csi/identity.h"
#include "rpc/http2/address.h"
#include "store/registry_store.h"

#define DEFAULT_SOCKET_DIRECTORY "/run/skycap"
#define DEFAULT_ENDPOINT "unix://" DEFAULT_SOCKET_DIRECTORY "/csi.sock"
#define DEFAULT_DATA "/var/lib/skycap"
#define REGISTRY_STORE "registry://"
#define MOST_METRICS_VOLUMES 10000

static struct serve_settings settings = {
    .roles_text = "node,controller",
    .storage.directory = DEFAULT_DATA,
    .driver_name = "csi.skycap.dev",
    .csi_version = "1.12",
    .log_level = "info",
    .log_format = "text",
};

const struct option serve_settings_flags[] = {
    {"roles", 0, "LIST", OPTION_TEXT, &settings.roles_text,
     "comma-separated roles: node, controller (the two services of CSI), registry, "
     "oim-controller; default node,controller"},
    {"endpoint", 0, "ADDR", OPTION_TEXT, &settings.endpoint,
     "CSI socket; default $CSI_ENDPOINT, or " DEFAULT_ENDPOINT},
    {"listen", 0, "HOST:PORT", OPTION_LIST, &settings.listen,
     "also serve here, with mutual TLS; may be given several times"},
    {"http", 0, "HOST:PORT", OPTION_TEXT, &settings.http,
     "serve the web page, /metrics and /healthz here; the page only on the loopback, unless there "
     "is a token; see docs/page.md"},
    {"http-host", 0, "NAME", OPTION_LIST, &settings.http_hosts,
     "host name by which browsers may reach --http, besides localhost and addresses; may be given "
     "several times"},
    {"http-token-file", 0, "FILE", OPTION_TEXT, &settings.http_token_file,
     "whoever has the token in FILE, 16 characters at least, may change things on the web page; "
     "default: the page only shows"},
    {"metrics-volumes", 0, "N", OPTION_NUMBER, &settings.metrics_volumes,
     "report bytes used and limit of single volumes, N of each connection at most, the oldest "
     "first; at most 10000; default 0"},
    {"tls-ca", 0, "FILE", OPTION_TEXT, &settings.tls.ca_file,
     "PEM certificates of the authorities trusted to sign peers'"},
    {"tls-cert", 0, "FILE", OPTION_TEXT, &settings.tls.certificate_file, "server certificate, PEM"},
    {"tls-key", 0, "FILE", OPTION_TEXT, &settings.tls.key_file, "its private key, PEM"},
    {"insecure", 0, NULL, OPTION_FLAG, &settings.insecure,
     "no TLS for --listen and for outgoing calls; every client has all permissions"},
    {"socket-mode", 0, "OCTAL", OPTION_OCTAL, &settings.socket_mode,
     "permissions of the CSI socket; default 0600"},
    {"max-message-bytes", 0, "N", OPTION_NUMBER, &settings.max_message_bytes,
     "maximum message size; default 4194304"},
    {"greet", 0, NULL, OPTION_FLAG, &settings.greets,
     "say on stdout where everything is and what to try next, once it is ready; default on a "
     "terminal"},
    {"log-level", 0, "LEVEL", OPTION_TEXT, &settings.log_level,
     "debug, info, warn or error; default info"},
    {"log-format", 0, "FORMAT", OPTION_TEXT, &settings.log_format, "text or json; default text"},
    {"data", 0, "DIR", OPTION_TEXT, &settings.storage.directory,
     "directory for volumes and state, created if missing; default " DEFAULT_DATA},
    {"backend", 0, "NAME", OPTION_LIST, &settings.storage.backends,
     "btrfs, xfs, dir, memory, or auto: btrfs or dir, the best that works in --data; default auto; "
     "may be given several times, the first is the default for volumes"},
    {"connections", 0, "DIR", OPTION_TEXT, &settings.connections,
     "serve the storage systems described by DIR/NAME.yaml; changes take effect at once; see "
     "docs/connections.md"},
    {"repositories", 0, "DIR", OPTION_TEXT, &settings.repositories,
     "snapshots can be exported to the repositories described by DIR/NAME.yaml; see "
     "docs/snapshots.md"},
    {"allow-drill-commands", 0, NULL, OPTION_FLAG, &settings.allows_drill_commands,
     "run the shell command of `skycap snapshot drill --command`, as the user of this process; a "
     "command in the file of a repository needs no permission"},
    {"pool-device", 0, "DEVICE", OPTION_TEXT, &settings.storage.pool_device,
     "blank block device to create the pool of btrfs or xfs on; default: the one that it is on, "
     "or a file in --data, which is slower"},
    {"pool-size", 0, "SIZE", OPTION_TEXT, &settings.storage.pool_size,
     "maximum size of the file for the pool; default: half of the free disk space"},
    {"pool-preallocate", 0, NULL, OPTION_FLAG, &settings.storage.pool_is_allocated,
     "take the whole size of a btrfs pool's file from the disk at once, and keep it; a pool of xfs "
     "always does"},
    {"quotas", 0, NULL, OPTION_FLAG, &settings.storage.may_switch_quotas_on,
     "enable quotas if --data is on an existing btrfs; kernels before 6.7 can then no longer "
     "mount it"},
    {"max-volumes", 0, "N", OPTION_NUMBER, &settings.max_volumes,
     "maximum number of volumes attached to this node; default: unlimited"},
    {"overprovisioning", 0, "PERCENT", OPTION_NUMBER, &settings.overprovisioning,
     "percentage of the free space offered to one volume; default 100"},
    {"node-id", 0, "ID", OPTION_TEXT, &settings.node_id,
     "this node's name; default: the host name"},
    {"driver-name", 0, "NAME", OPTION_TEXT, &settings.driver_name,
     "CSI plugin name; default csi.skycap.dev"},
    {"csi-version", 0, "1.12|1.13", OPTION_TEXT, &settings.csi_version,
     "newest CSI version whose capabilities are advertised; default 1.12"},
    {"kubelet-registration-dir", 0, "DIR", OPTION_TEXT, &settings.registration_directory,
     "register with the kubelet here, usually /var/lib/kubelet/plugins_registry"},
    {"store", 0, "URL", OPTION_TEXT, &settings.store_url,
     "store of the registry, or of the state shared by processes with --connections: "
     "etcd://HOST:PORT[,HOST:PORT...][/PREFIX], or sqlite:DIRECTORY for one process; with "
     "--connections also registry://HOST:PORT[/PREFIX]; default: in --data"},
    {"store-ca", 0, "FILE", OPTION_TEXT, &settings.store_tls.ca_file,
     "PEM certificates of the authorities trusted to sign the store's; default: no TLS with etcd, "
     "--tls-ca, --tls-cert and --tls-key with a registry"},
    {"store-cert", 0, "FILE", OPTION_TEXT, &settings.store_tls.certificate_file,
     "client certificate for the store, PEM"},
    {"store-key", 0, "FILE", OPTION_TEXT, &settings.store_tls.key_file, "its private key, PEM"},
    {"registry-readers", 0, "NAME", OPTION_LIST, &settings.readers,
     "certificate name that may read the registry, besides user.admin; a trailing * matches "
     "any suffix; may be given several times; default host.*, controller.*, node.*, user.*"},
    {"registry", 0, "ADDR", OPTION_TEXT, &settings.oim.registry,
     "registry of the cluster: with --listen, this node joins it; an OIM controller registers "
     "there, too; default: none"},
    {"registry-delay", 0, "SECONDS", OPTION_NUMBER, &settings.registry_delay_s,
     "time between registrations; default 10 for a node, 60 for an OIM controller; others notice "
     "after three times as long that it is gone"},
    {"transfer-rate", 0, "SIZE", OPTION_TEXT, &settings.transfer_rate,
     "bytes per second that this node sends to other nodes when volumes are copied or moved, for "
     "example 100Mi; default 0: no limit"},
    {"advertise", 0, "HOST:PORT", OPTION_TEXT, &settings.advertise,
     "where other nodes reach this one; default: the first --listen"},
    {"topology", 0, "KEY=VALUE", OPTION_LIST, &settings.topology,
     "where this node is, such as topology.kubernetes.io/zone=a; may be given several times"},
    {"controller-id", 0, "ID", OPTION_TEXT, &settings.oim.id,
     "the OIM controller's name in the registry; default: --node-id"},
    {"controller-address", 0, "ADDR", OPTION_TEXT, &settings.oim.address,
     "where the registry finds the OIM controller: HOST:PORT or unix:///path"},
    {"accelerator", 0, "NAME", OPTION_TEXT, &settings.oim.accelerator,
     "kernel: devices in this host's memory; spdk: SPDK's vhost; default kernel"},
    {"spdk", 0, "SOCKET", OPTION_TEXT, &settings.oim.spdk_socket,
     "SPDK's JSON-RPC socket; default /var/tmp/spdk.sock"},
    {"vhost-controller", 0, "NAME", OPTION_TEXT, &settings.oim.vhost_controller,
     "SPDK's vhost-scsi controller, which must exist; default vhost.0"},
    {"vhost-device", 0, "PCI", OPTION_TEXT, &settings.oim.vhost_device,
     "its PCI address as the host sees it, may be partial: 0000:00:15.0, 00:15."},
    {0},
};

static void
set_defaults(void)
{
    if (!settings.endpoint)
        settings.endpoint = getenv("CSI_ENDPOINT");
    if (!settings.endpoint || !settings.endpoint[0])
        settings.endpoint = DEFAULT_ENDPOINT;
    if (!settings.node_id) {
        if (gethostname(settings.host_name, sizeof settings.host_name - 1) != 0)
            settings.host_name[0] = '\0';
        settings.node_id = settings.host_name;
    }
    if (!settings.oim.id)
        settings.oim.id = settings.node_id;
    settings.oim.registry_delay_ms = (uint32_t)settings.registry_delay_s * 1000;
    settings.oim.data_directory = settings.storage.directory;
}

static struct error *
read_roles(void)
{
    static const struct {
        const char *name;
        enum role role;
    } names[] = {{"node", ROLE_NODE},
                 {"controller", ROLE_CONTROLLER},
                 {"registry", ROLE_REGISTRY},
                 {"oim-controller", ROLE_OIM_CONTROLLER}};
    const char *text = settings.roles_text;
    do {
        size_t size = strcspn(text, ","), i = 0;
        while (i < COUNT_OF(names) &&
               (strlen(names[i].name) != size || strncmp(text, names[i].name, size) != 0))
            i++;
        if (i == COUNT_OF(names))
            return error_new(CODE_INVALID_ARGUMENT,
                             "--roles: \"%.*s\" is none of node, controller, registry, "
                             "oim-controller",
                             (int)(size < 64 ? size : 64), text);
        settings.roles |= names[i].role;
        text += size + (text[size] == ',');
    } while (text[0]);
    return NULL;
}

bool
serve_settings_have_tls(const struct tls_options *tls)
{
    return tls->ca_file || tls->certificate_file || tls->key_file;
}

bool
serve_settings_have_cluster(const struct serve_settings *of)
{
    return of->oim.registry && of->listen.count && of->roles & ROLES_OF_CSI;
}

bool
serve_settings_has_registry_store(const struct serve_settings *of)
{
    return of->store_url && !strncmp(of->store_url, REGISTRY_STORE, strlen(REGISTRY_STORE));
}

/* /run is empty after each boot. The unit makes the directory itself. */
struct error *
serve_settings_make_default_directory(const struct serve_settings *of)
{
    if (strcmp(of->endpoint, DEFAULT_ENDPOINT) != 0 || mkdir(DEFAULT_SOCKET_DIRECTORY, 0755) == 0 ||
        errno == EEXIST)
        return NULL;
    struct error *error =
        error_from_errno(errno, "make " DEFAULT_SOCKET_DIRECTORY ", the directory of the socket");
    if (geteuid() == 0)
        return error;
    return error_advise(error, "without root, give paths of your own, such as --endpoint "
                               "unix://$HOME/skycap.sock --data $HOME/skycap");
}

bool
serve_settings_has_default_endpoint(const struct serve_settings *of)
{
    return strcmp(of->endpoint, DEFAULT_ENDPOINT) == 0;
}

static struct error *
check_tls(void)
{
    const struct tls_options *all[] = {&settings.tls, &settings.store_tls};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (serve_settings_have_tls(all[i]) &&
            !(all[i]->ca_file && all[i]->certificate_file && all[i]->key_file))
            return error_new(CODE_INVALID_ARGUMENT,
                             "--%1$s-ca, --%1$s-cert and --%1$s-key go together",
                             i ? "store" : "tls");
    bool has_tls = serve_settings_have_tls(&settings.tls);
    if (settings.listen.count && !has_tls && !settings.insecure)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--listen needs --tls-ca, --tls-cert and --tls-key, or --insecure");
    if (settings.insecure && has_tls)
        return error_new(CODE_INVALID_ARGUMENT, "--insecure and certificates exclude each other");
    return NULL;
}

/* Calls to an address that is not local need TLS, or --insecure. */
static struct error *
check_protected(const char *flag, const char *text)
{
    struct address address;
    if (!text || settings.insecure || serve_settings_have_tls(&settings.tls))
        return NULL;
    struct error *error = address_parse(text, &address);
    if (!error && !address_is_local(&address))
        error = error_new(CODE_INVALID_ARGUMENT,
                          "it is not a unix socket: give --tls-ca, --tls-cert and --tls-key, or "
                          "--insecure");
    return error_wrap(error, "--%s %s", flag, text);
}

/* A registry's own entries need watches, which a store on a registry does not have. */
static struct error *
check_store(void)
{
    if (!serve_settings_has_registry_store(&settings))
        return NULL;
    if (settings.roles & ROLE_REGISTRY)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--store %s: a registry keeps its entries in etcd or sqlite, not in "
                         "another registry",
                         settings.store_url);
    bool is_protected = settings.insecure || serve_settings_have_tls(&settings.tls) ||
                        serve_settings_have_tls(&settings.store_tls);
    if (registry_store_is_remote(settings.store_url) && !is_protected)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--store %s: it is not a unix socket: give --tls-ca, --tls-cert and "
                         "--tls-key, or --insecure",
                         settings.store_url);
    return NULL;
}

/* A flag that would have no effect is an error. */
static struct error *
check_roles(void)
{
    const struct oim_controller_options *oim = &settings.oim;
    const struct {
        const char *flag;
        bool is_given;
        unsigned roles;
        const char *role;
    } rules[] = {
        {"connections", settings.connections, ROLES_OF_CSI, "node or controller"},
        {"repositories", settings.repositories, ROLES_OF_CSI, "node or controller"},
        {"allow-drill-commands", settings.allows_drill_commands && !settings.repositories, 0,
         "node or controller, and --repositories"},
        {"backend", settings.storage.backends.count, ROLES_OF_CSI, "node or controller"},
        {"pool-device", settings.storage.pool_device, ROLES_OF_CSI, "node or controller"},
        {"pool-size", settings.storage.pool_size, ROLES_OF_CSI, "node or controller"},
        {"pool-preallocate", settings.storage.pool_is_allocated, ROLES_OF_CSI,
         "node or controller"},
        {"max-volumes", settings.max_volumes, ROLE_NODE, "node"},
        {"metrics-volumes", settings.metrics_volumes, ROLES_OF_CSI, "node or controller"},
        {"overprovisioning", settings.overprovisioning, ROLE_CONTROLLER, "controller"},
        {"kubelet-registration-dir", settings.registration_directory, ROLE_NODE, "node"},
        {"store", settings.store_url && !settings.connections, ROLE_REGISTRY,
         "registry, or --connections"},
        {"store-ca", settings.store_tls.ca_file && !settings.connections, ROLE_REGISTRY,
         "registry, or --connections"},
        {"registry-readers", settings.readers.count, ROLE_REGISTRY, "registry"},
        {"registry", oim->registry && !settings.listen.count, ROLE_OIM_CONTROLLER,
         "oim-controller, or a node with --listen"},
        {"registry-delay", settings.registry_delay_s && !oim->registry, 0,
         "oim-controller or node, and --registry"},
        {"transfer-rate", settings.transfer_rate && !serve_settings_have_cluster(&settings), 0,
         "node, --registry and --listen"},
        {"advertise", settings.advertise && !serve_settings_have_cluster(&settings), 0,
         "node, --registry and --listen"},
        {"topology", settings.topology.count && !serve_settings_have_cluster(&settings), 0,
         "node, --registry and --listen"},
        {"controller-address", oim->address, ROLE_OIM_CONTROLLER, "oim-controller"},
        {"accelerator", oim->accelerator, ROLE_OIM_CONTROLLER, "oim-controller"},
        {"spdk", oim->spdk_socket, ROLE_OIM_CONTROLLER, "oim-controller"},
        {"vhost-controller", oim->vhost_controller, ROLE_OIM_CONTROLLER, "oim-controller"},
        {"vhost-device", oim->vhost_device, ROLE_OIM_CONTROLLER, "oim-controller"},
    };
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (rules[i].is_given && !(settings.roles & rules[i].roles))
            return error_new(CODE_INVALID_ARGUMENT, "--%s needs the role %s, see --roles",
                             rules[i].flag, rules[i].role);
    return NULL;
}

/* Other nodes must be able to call the address. */
static struct error *
check_cluster(void)
{
    if (!serve_settings_have_cluster(&settings))
        return NULL;
    if (strchr(settings.node_id, '/'))
        return error_new(CODE_INVALID_ARGUMENT, "--node-id: a node of a cluster has no slash");
    const char *address = settings.advertise ? settings.advertise : settings.listen.items[0];
    static const char *const any[] = {"0.0.0.0:", "[::]:", ":"};
    for (size_t i = 0; i < COUNT_OF(any); i++)
        if (strncmp(address, any[i], strlen(any[i])) == 0)
            return error_new(CODE_INVALID_ARGUMENT,
                             "other nodes cannot call %s: give --advertise HOST:PORT", address);
    settings.advertise = address;
    return NULL;
}

static struct error *
read_transfer_rate(void)
{
    const char *text = settings.transfer_rate;
    struct error *error = text ? size_text_parse(text, &settings.transfer_bytes_per_s) : NULL;
    return error_wrap(error, "--transfer-rate");
}

static struct error *
check_settings(void)
{
    size_t id_size = strlen(settings.node_id);
    struct error *error = check_tls();
    if (!error)
        error = check_roles();
    if (!error)
        error = check_protected("registry", settings.oim.registry);
    if (!error)
        error = check_cluster();
    if (!error)
        error = check_store();
    if (error)
        return error;
    if (id_size == 0 || id_size > 128)
        return error_new(CODE_INVALID_ARGUMENT, "--node-id must have 1 to 128 characters");
    if (strcmp(settings.csi_version, "1.12") != 0 && strcmp(settings.csi_version, "1.13") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "--csi-version: 1.12 or 1.13");
    if (settings.connections && settings.storage.backends.count)
        return error_new(CODE_INVALID_ARGUMENT,
                         "--connections and --backend exclude each other: name the back end in the "
                         "file of a connection with `driver: local`");
    if (settings.connections && settings.roles & ROLE_REGISTRY)
        return error_new(
            CODE_INVALID_ARGUMENT,
            "--connections and the role registry need separate processes: both forward "
            "methods that they do not know");
    if (!settings.http && (settings.http_hosts.count || settings.http_token_file))
        return error_new(CODE_INVALID_ARGUMENT, "--http-host and --http-token-file need --http");
    if (settings.socket_mode > 0777)
        return error_new(CODE_INVALID_ARGUMENT, "--socket-mode: 0000 to 0777");
    if (settings.max_message_bytes > UINT32_MAX / 2)
        return error_new(CODE_INVALID_ARGUMENT, "--max-message-bytes: at most %u", UINT32_MAX / 2);
    if (settings.metrics_volumes > MOST_METRICS_VOLUMES ||
        (settings.metrics_volumes && !settings.http))
        return error_new(CODE_INVALID_ARGUMENT, "--metrics-volumes: at most %d, and with --http",
                         MOST_METRICS_VOLUMES);
    if (settings.overprovisioning > CONTROLLER_MOST_OVERPROVISIONING)
        return error_new(CODE_INVALID_ARGUMENT, "--overprovisioning: at most %d percent",
                         CONTROLLER_MOST_OVERPROVISIONING);
    if (settings.registry_delay_s > 86400)
        return error_new(CODE_INVALID_ARGUMENT, "--registry-delay: at most 86400 seconds, a day");
    error = read_transfer_rate();
    return error ? error : identity_check_name(settings.driver_name);
}

struct error *
serve_settings_init_log(struct log *log)
{
    *log = (struct log){.fd = STDERR_FILENO, .json = strcmp(settings.log_format, "json") == 0};
    if (!log->json && strcmp(settings.log_format, "text") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "--log-format: \"%s\" is neither text nor json",
                         settings.log_format);
    return error_wrap(log_parse_level(settings.log_level, &log->level), "--log-level");
}

struct error *
serve_settings_read(const struct serve_settings **out)
{
    *out = &settings;
    set_defaults();
    struct error *error = read_roles();
    return error ? error : check_settings();
}
