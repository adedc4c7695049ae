#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares manifests and units with each other and with the program: tests/deployment.py SKYCAP OBJECTS SOCKET DIRECTORY

OBJECTS has the objects of one deployment, a line of JSON each, as manifest-objects prints them. SOCKET is that of a server, which is asked to make volumes. DIRECTORY is for
the servers that are started with the arguments of the manifests. Prints `ok FACT` and `FAILED FACT: WHY`, and counts at the end.
"""

import functools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAG = re.compile(r"--[a-z][a-z0-9-]*")
SIDECAR_KEYS = "csi.storage.k8s.io/"
KUBERNETES_OWN = {"kube-root-ca.crt"}
# The flags of the sidecars, in the versions that the manifests name.
COMMON = {"--csi-address", "--leader-election", "--timeout", "--retry-interval-start", "--retry-interval-max", "--feature-gates", "--http-endpoint", "--kube-api-qps",
          "--kube-api-burst", "--v"}
SIDECARS = {
    "csi-provisioner:v6.3.0": COMMON | {"--strict-topology", "--immediate-topology", "--enable-capacity", "--capacity-ownerref-level", "--capacity-poll-interval",
                                        "--extra-create-metadata", "--default-fstype", "--worker-threads"},
    "csi-attacher:v4.12.0": COMMON | {"--default-fstype", "--worker-threads", "--reconcile-sync", "--resync"},
    "csi-resizer:v2.2.1": COMMON | {"--handle-volume-inuse-error", "--workers", "--resync-period"},
    "csi-snapshotter:v8.6.0": COMMON | {"--extra-create-metadata", "--worker-threads", "--resync-period"},
}
# Their leases, named for the driver.
LEASES = ("{}", "external-attacher-leader-{}", "external-resizer-{}", "external-snapshotter-leader-{}")


class Program:
    def __init__(self, path):
        self.path = path
        self.helps = {}

    def run(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, check=False, timeout=30)

    def flags(self, command):
        if command not in self.helps:
            self.helps[command] = set(FLAG.findall(self.run(command, "--help").stdout))
        return self.helps[command]

    def version(self):
        return json.loads(self.run("version", "-o", "json").stdout)["version"]

    def call(self, server, method, request):
        done = self.run("call", "--timeout", "20", f"unix:{server}", method, json.dumps(request))
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr.strip())


class Deployment:
    """The objects, and what they say of each other."""

    def __init__(self, path):
        self.objects = [json.loads(line)["object"] for line in open(path)]

    def of(self, *kinds):
        return [thing for thing in self.objects if thing["kind"] in kinds]

    def has(self, kind, name, namespace=None):
        return any(thing["metadata"]["name"] == name and (not namespace or thing["metadata"].get("namespace") == namespace) for thing in self.of(kind))

    def templates(self):
        """The pods, each with a name for messages."""
        for thing in self.of("Deployment", "DaemonSet"):
            yield f"{thing['kind']} {thing['metadata']['name']}", thing["metadata"]["namespace"], thing["spec"]["template"]

    def containers(self):
        for where, namespace, template in self.templates():
            for container in template["spec"]["containers"]:
                yield f"{where}, {container['name']}", namespace, template["spec"], container

    def drivers(self):
        return [thing["metadata"]["name"] for thing in self.of("CSIDriver")]


def is_skycap(container):
    return "/skycap:" in container["image"]


def flags_of(arguments):
    return {argument.split("=")[0] for argument in arguments if argument.startswith("-")}


def value_of(arguments, flag):
    for argument in arguments:
        if argument.startswith(flag + "="):
            return argument.partition("=")[2]
    return None


def probes_of(container):
    """The commands that probes run."""
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        if "exec" in container.get(kind, {}):
            yield container[kind]["exec"]["command"]


def place_of(spec, container, path):
    """What a path is: the source of the volume it is in, and the path below. None: it is in no volume."""
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = [mount for mount in container["volumeMounts"] if (path + "/").startswith(mount["mountPath"] + "/")]
    if not mounts:
        return None
    mount = max(mounts, key=lambda mount: len(mount["mountPath"]))
    rest = path[len(mount["mountPath"]):].strip("/")
    source = sources.get(mount["name"], {})
    if "hostPath" in source:
        return "host", os.path.join(source["hostPath"]["path"], rest).rstrip("/")
    return mount["name"], rest


# ---- facts: each gives a list of what is wrong -------------------------------------------------------------------------


def flags_exist(deployment, program):
    wrong, seen = [], 0
    for where, _, _, container in deployment.containers():
        known = program.flags(container["args"][0]) if is_skycap(container) else SIDECARS.get(container["image"].rpartition("/")[2])
        if known is not None:
            seen += 1
            wrong += [f"{where}: there is no flag {flag}" for flag in sorted(flags_of(container.get("args", [])) - known)]
        for command in probes_of(container):
            wrong += [f"{where}: skycap {command[1]} has no flag {flag}" for flag in sorted(flags_of(command) - program.flags(command[1]))]
    return wrong if seen else ["no container was looked at"]


def sidecars_are_known(deployment, _):
    sidecars = [container["image"] for _, _, _, container in deployment.containers() if "/sig-storage/csi-" in container["image"]]
    return [f"{image}: this version's flags are not known here" for image in sidecars if image.rpartition("/")[2] not in SIDECARS] + ([] if sidecars else ["none"])


def images_are_of_this_version(deployment, program):
    images = [container["image"] for _, _, _, container in deployment.containers() if is_skycap(container)]
    wanted = f"registry.example.com/skycap:{program.version()}"
    return [f"{image}, and not {wanted}" for image in images if image != wanted] + ([] if images else ["none"])


def driver_names_agree(deployment, program):
    real = program.call(sys.argv[3], "csi.v1.Identity/GetPluginInfo", {})[0]["name"]
    names = [("CSIDriver", name) for name in deployment.drivers()]
    names += [(f"StorageClass {thing['metadata']['name']}", thing["provisioner"]) for thing in deployment.of("StorageClass")]
    names += [(thing["kind"], thing["driver"]) for thing in deployment.of("VolumeSnapshotClass", "VolumeGroupSnapshotClass")]
    kinds = {kind.split()[0] for kind, _ in names}
    missing = {"CSIDriver", "StorageClass", "VolumeSnapshotClass", "VolumeGroupSnapshotClass"} - kinds
    return [f"{where}: {name}, and the program says {real}" for where, name in names if name != real] + [f"no {kind}" for kind in sorted(missing)]


def names_of_rights_agree(deployment, _):
    wrong = []
    for binding in deployment.of("RoleBinding", "ClusterRoleBinding"):
        where = f"{binding['kind']} {binding['metadata']['name']}"
        role, namespace = binding["roleRef"], binding["metadata"].get("namespace")
        if not deployment.has(role["kind"], role["name"], namespace if role["kind"] == "Role" else None):
            wrong.append(f"{where}: there is no {role['kind']} {role['name']}")
        for subject in binding["subjects"]:
            if not deployment.has("ServiceAccount", subject["name"], subject["namespace"]):
                wrong.append(f"{where}: there is no account {subject['namespace']}/{subject['name']}")
    bound = {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in deployment.of("RoleBinding", "ClusterRoleBinding")}
    wrong += [f"{role['kind']} {role['metadata']['name']} is bound to nobody" for role in deployment.of("Role", "ClusterRole")
              if (role["kind"], role["metadata"]["name"]) not in bound]
    for where, namespace, template in deployment.templates():
        account = template["spec"].get("serviceAccountName")
        if account and not deployment.has("ServiceAccount", account, namespace):
            wrong.append(f"{where}: there is no account {account}")
    return wrong if bound else ["nothing is bound"]


def leases_are_those_of_the_driver(deployment, _):
    named = {name for role in deployment.of("Role") for rule in role["rules"] if rule["resources"] == ["leases"] for name in rule.get("resourceNames", [])}
    wanted = {form.format(re.sub("[^a-zA-Z0-9-]", "-", name)) for name in deployment.drivers() for form in LEASES}
    return [f"{name} is in one of rule and driver only" for name in sorted(named ^ wanted)]


def tokens_are_for_sidecars(deployment, _):
    wrong = []
    for where, _, spec, container in deployment.containers():
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        has_token = "/var/run/secrets/kubernetes.io/serviceaccount" in mounts
        if spec.get("automountServiceAccountToken") is not False:
            wrong.append(f"{where}: every container has a token")
        if has_token != ("/sig-storage/csi-" in container["image"]):
            wrong.append(f"{where}: {'a' if has_token else 'no'} token")
    return wrong


def sockets_agree(deployment, _):
    """Sidecars and probes find the socket of skycap, and so does the kubelet where it registers."""
    wrong, seen = [], 0
    for where, _, template in deployment.templates():
        spec = template["spec"]
        for skycap in [container for container in spec["containers"] if is_skycap(container)]:
            endpoint = value_of(skycap["args"], "--endpoint").removeprefix("unix://")
            place = place_of(spec, skycap, endpoint)
            for container in spec["containers"]:
                address = value_of(container.get("args", []), "--csi-address")
                if address:
                    seen += 1
                    if place_of(spec, container, address) != place:
                        wrong.append(f"{where}, {container['name']}: {address} is not the socket of skycap")
            for command in probes_of(skycap):
                if f"unix://{endpoint}" not in [word.removeprefix("--endpoint=") for word in command]:
                    wrong.append(f"{where}: a probe asks another socket: {command}")
            registration = value_of(skycap["args"], "--kubelet-registration-dir")
            if registration:
                wrong += [f"{where}: the kubelet does not find {path}" for path in (endpoint, registration) if place_of(spec, skycap, path) != ("host", path)]
                wrong += [f"{where}: {endpoint} is not named for {name}" for name in deployment.drivers() if f"/{name}/" not in endpoint]
            if place is None:
                wrong.append(f"{where}: {endpoint} is in no volume")
    return wrong if seen else ["no sidecar"]


def paths_of_arguments_are_mounted(deployment, _):
    wrong = []
    for where, _, spec, container in deployment.containers():
        for argument in container.get("args", []) + container.get("command", []):
            value = argument.partition("=")[2].removeprefix("unix://")
            if value.startswith("/") and place_of(spec, container, value) is None:
                wrong.append(f"{where}: {argument} is in no volume")
    return wrong


def volumes_and_mounts_agree(deployment, _):
    wrong = []
    for where, _, template in deployment.templates():
        spec = template["spec"]
        given = {volume["name"] for volume in spec["volumes"]}
        used = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
        wrong += [f"{where}: volume {name} is only {'given' if name in given else 'used'}" for name in sorted(given ^ used)]
    return wrong


def what_is_referred_to_exists(deployment, _):
    """ConfigMaps are in a manifest. Secrets are made by the commands of docs/deploy.md."""
    page = (ROOT / "docs/deploy.md").read_text()
    wrong = []
    for where, namespace, template in deployment.templates():
        for volume in template["spec"]["volumes"]:
            sources = [volume, *volume.get("projected", {}).get("sources", [])]
            maps = {source["configMap"]["name"] for source in sources if "configMap" in source} - KUBERNETES_OWN
            wrong += [f"{where}: there is no ConfigMap {name}" for name in maps if not deployment.has("ConfigMap", name, namespace)]
            secret = volume.get("secret", {}).get("secretName")
            if secret and f"secret generic {secret} " not in page:
                wrong.append(f"{where}: docs/deploy.md does not make the Secret {secret}")
    return wrong


def services_lead_to_pods(deployment, _):
    wrong = []
    for service in deployment.of("Service"):
        name = service["metadata"]["name"]
        pods = [template for _, _, template in deployment.templates() if service["spec"]["selector"].items() <= template["metadata"]["labels"].items()]
        ports = {port["name"] for template in pods for container in template["spec"]["containers"] for port in container.get("ports", [])}
        wrong += [f"Service {name}: no pod has the port {port['targetPort']}" for port in service["spec"]["ports"] if port["targetPort"] not in ports]
    for where, _, _, container in deployment.containers():
        for flag in ("--registry", "--store"):
            address = value_of(container.get("args", []), flag)
            if address:
                host, port = address.removeprefix("etcd://").partition("/")[0].split(":")
                if not any(host == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc" and int(port) in [item["port"] for item in service["spec"]["ports"]]
                           for service in deployment.of("Service")):
                    wrong.append(f"{where}: {address} is no Service")
    return wrong


def selectors_match(deployment, _):
    return [f"{thing['kind']} {thing['metadata']['name']}" for thing in deployment.of("Deployment", "DaemonSet")
            if not thing["spec"]["selector"]["matchLabels"].items() <= thing["spec"]["template"]["metadata"]["labels"].items()]


def only_who_mounts_is_privileged(deployment, _):
    wrong = []
    for where, _, _, container in deployment.containers():
        context = container["securityContext"]
        mounts_for_host = any(mount.get("mountPropagation") == "Bidirectional" for mount in container["volumeMounts"])
        if mounts_for_host and not context.get("privileged"):
            wrong.append(f"{where}: Bidirectional is only for privileged containers")
        is_locked = context.get("capabilities") == {"drop": ["ALL"]} and context.get("allowPrivilegeEscalation") is False
        if not context.get("privileged") and not is_locked:
            wrong.append(f"{where}: keeps capabilities that it does not need")
        if context.get("privileged") and "/sig-storage/csi-" in container["image"]:
            wrong.append(f"{where}: is privileged")
    return wrong


def metrics_are_served(deployment, _):
    """By every skycap, at a port that is named for Prometheus, and ready is what /healthz says."""
    wrong = []
    for where, _, _, container in deployment.containers():
        if is_skycap(container):
            port = (value_of(container["args"], "--http") or "").rpartition(":")[2]
            if ("http", port) not in [(item["name"], str(item["containerPort"])) for item in container.get("ports", [])]:
                wrong.append(f"{where}: no port http {port}")
            if container["readinessProbe"].get("httpGet", {}).get("path") != "/healthz":
                wrong.append(f"{where}: readiness is not /healthz")
    ports = [item["containerPort"] for _, _, spec, container in deployment.containers() if spec.get("hostNetwork") for item in container.get("ports", [])]
    return wrong + [f"the port {port} of the host is taken twice" for port in set(ports) if ports.count(port) > 1]


def scrubs_are_seen(deployment, _):
    """Who has a pool of its own reads what `btrfs scrub` of the host notes."""
    return [f"{where}: /var/lib/btrfs is not that of the host, read-only" for where, _, spec, container in deployment.containers()
            if is_skycap(container) and "node" in (value_of(container["args"], "--roles") or "") and not value_of(container["args"], "--connections")
            and (place_of(spec, container, "/var/lib/btrfs") != ("host", "/var/lib/btrfs")
                 or not all(mount.get("readOnly") for mount in container["volumeMounts"] if mount["mountPath"] == "/var/lib/btrfs"))]


def volumes_that_follow_are_attached(deployment, _):
    """Attaching moves them: the driver asks for it, a sidecar does it, and may."""
    wrong = [] if deployment.has("StorageClass", "skycap-follow") else ["there is no class skycap-follow"]
    wrong += [f"CSIDriver {thing['metadata']['name']}: attachRequired is not true" for thing in deployment.of("CSIDriver") if thing["spec"].get("attachRequired") is not True]
    if not any("/csi-attacher:" in container["image"] for _, _, _, container in deployment.containers()):
        wrong.append("no attacher")
    rules = [rule for role in deployment.of("ClusterRole") for rule in role["rules"]]
    for resource in ("volumeattachments", "volumeattachments/status"):
        if not any(resource in rule["resources"] and "patch" in rule["verbs"] for rule in rules):
            wrong.append(f"nobody may patch {resource}")
    return wrong


# ---- facts of a running program -------------------------------------------------------------------------------------------


def ask_for_volume(program, server, thing):
    """As the provisioner asks: its own keys become the capability. Returns its topology, and why it was refused, or ""."""
    parameters = thing.get("parameters", {})
    fs_type = parameters.get(SIDECAR_KEYS + "fstype", "")
    use = {"block": {}} if "-block" in thing["metadata"]["name"] else {"mount": {"fsType": fs_type}}
    name = "claim-" + thing["metadata"]["name"]
    reply, why = program.call(server, "csi.v1.Controller/CreateVolume", {
        "name": name, "capacityRange": {"requiredBytes": str(512 << 20)}, "volumeCapabilities": [{**use, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}],
        "parameters": {key: value for key, value in parameters.items() if not key.startswith(SIDECAR_KEYS)}})
    if not reply:
        return [], why
    return reply["volume"].get("accessibleTopology", []), program.call(server, "csi.v1.Controller/DeleteVolume", {"volumeId": reply["volume"]["volumeId"]})[1]


def topologies_fit(deployment, program, server):
    """In a cluster, a volume that follows its pod is accessible from every node, and any other from its node only."""
    wrong = []
    for thing in deployment.of("StorageClass"):
        topology, why = ask_for_volume(program, server, thing)
        follows = thing.get("parameters", {}).get("mobility") == "follow"
        if why or bool(topology) == follows:
            wrong.append(f"{thing['metadata']['name']}: {why or topology}")
    return wrong


def attributes_can_be_changed(deployment, program):
    """As the resizer asks, one class after the other. Limits belong to a device, so the volume is an image."""
    use = {"mount": {"fsType": "ext4"}, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}
    things, wrong = deployment.of("VolumeAttributesClass"), []
    if not things:
        return []
    reply, why = program.call(sys.argv[3], "csi.v1.Controller/CreateVolume", {
        "name": "claim-attributes", "capacityRange": {"requiredBytes": str(512 << 20)}, "volumeCapabilities": [use]})
    for thing in things if reply else []:
        changed, error = program.call(sys.argv[3], "csi.v1.Controller/ControllerModifyVolume", {
            "volumeId": reply["volume"]["volumeId"], "mutableParameters": thing["parameters"]})
        wrong += [] if changed is not None and thing["driverName"] in deployment.drivers() else [f"{thing['metadata']['name']}: {error}"]
    if not reply:
        return [why]
    gone, error = program.call(sys.argv[3], "csi.v1.Controller/DeleteVolume", {"volumeId": reply["volume"]["volumeId"]})
    return wrong + ([] if gone is not None else [error])


def connection_files_are_good(deployment, program, directory):
    for thing in deployment.of("ConfigMap"):
        for name, text in thing["data"].items():
            pathlib.Path(directory, name).write_text(text)
    checked = program.run("connection", "check", str(directory))
    return [] if checked.returncode == 0 else (checked.stdout + checked.stderr).splitlines()


class Server:
    """A server with the arguments of a container. What is in /var, /run and /etc there is in a directory here; certificates and ports are those of all servers."""

    def __init__(self, program, directory, number, deployment, container):
        self.program, self.container = program, container
        self.common, self.directory = directory, f"{directory}/{number}"
        self.arguments = [self.translate(argument) for argument in container["args"]]
        for argument in self.arguments:
            value = argument.partition("=")[2].removeprefix("unix://")
            if value.startswith(directory):
                is_file = pathlib.Path(value).suffix in (".sock", ".crt", ".key") or pathlib.Path(value).name == "token"
                (pathlib.Path(value).parent if is_file else pathlib.Path(value)).mkdir(parents=True, exist_ok=True)
        self.make_certificates()
        token = value_of(self.arguments, "--http-token-file")
        if token:
            pathlib.Path(token).touch(0o600)
            pathlib.Path(token).write_text("a-token-of-this-test")
        connections = value_of(self.arguments, "--connections")
        if connections:
            for name, text in deployment.of("ConfigMap")[0]["data"].items():
                pathlib.Path(connections, name).write_text(self.translate(text))
        elif value_of(self.arguments, "--roles") != "registry":
            self.arguments.append("--backend=dir")

    def translate(self, text):
        text = text.replace("/etc/skycap/pki", f"{self.common}/pki").replace("$(NODE_NAME)", "worker-1")
        text = re.sub(r"^--http=.*", "--http=127.0.0.1:0", text)
        text = re.sub(r"(?<![\w.])/(?=(var|run|etc)/)", f"{self.directory}/", text)
        return re.sub(r"(?:\$\(POD_IP\)|[a-z-]+\.[a-z-]+\.svc|(?<==)):(\d+)", lambda found: f"127.0.0.1:{port_for(found[1])}", text)

    def make_certificates(self):
        for flag in ("--tls-cert", "--store-cert"):
            path = value_of(self.arguments, flag)
            if path:
                self.program.run("pki", "init", f"{self.common}/pki")
                self.program.run("pki", "issue", pathlib.Path(path).stem, "--pki", f"{self.common}/pki")

    def start(self):
        with open(f"{self.directory}/log", "w") as output:
            self.process = subprocess.Popen([self.program.path, *self.arguments], stdout=output, stderr=output)

    def is_answering(self):
        return all(self.program.run(*[self.translate(word) for word in command[1:]]).returncode == 0 for command in probes_of(self.container) if command[1] == "call")

    def has_joined(self):
        """Whether a node with --registry is in the cluster, by its own account."""
        if not value_of(self.arguments, "--registry"):
            return True
        listed = self.program.run("node", "list", "-o", "json", "--timeout", "5", "--endpoint", value_of(self.arguments, "--endpoint"))
        nodes = json.loads(listed.stdout).get("nodes", []) if listed.returncode == 0 else []
        return [(node["id"], node["state"]) for node in nodes] == [("worker-1", "READY")]

    def try_it(self):
        """Why it does not answer its probes or join the cluster; "" if it does."""
        for _ in range(200):
            if self.process.poll() is not None:
                break
            if self.is_answering() and self.has_joined():
                return ""
            time.sleep(0.05)
        return f"it {'has ended' if self.process.poll() is not None else 'runs'}: {self.last_words()}"

    def stop(self):
        """Why it does not end well; "" if it does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        return "" if code == 0 else f"exit code {code}: {self.last_words()}"

    def last_words(self):
        return pathlib.Path(self.directory, "log").read_text().strip().splitlines()[-1:]


@functools.cache
def port_for(number):
    """A port of the loopback that is free here, for one of the manifests."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Report:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def say(self, fact, wrong):
        self.counts["failed" if wrong else "passed"] += 1
        print(f"FAILED {fact}: {'; '.join(wrong)}" if wrong else f"ok {fact}", flush=True)

    def end(self):
        print("# result: " + ", ".join(f"{number} {what}" for what, number in self.counts.items()))
        return 1 if self.counts["failed"] else 0


FACTS = (flags_exist, sidecars_are_known, images_are_of_this_version, driver_names_agree, names_of_rights_agree, leases_are_those_of_the_driver, tokens_are_for_sidecars,
         sockets_agree, paths_of_arguments_are_mounted, volumes_and_mounts_agree, what_is_referred_to_exists, services_lead_to_pods, selectors_match,
         only_who_mounts_is_privileged, metrics_are_served, scrubs_are_seen, volumes_that_follow_are_attached, attributes_can_be_changed)


def check_running(report, deployment, program, server, directory):
    for thing in deployment.of("StorageClass"):
        fact = f"CreateVolume takes the parameters of {thing['metadata']['name']}"
        _, why = ask_for_volume(program, server, thing)
        report.say(fact, [why] if why else [])
    if deployment.of("ConfigMap"):
        files = pathlib.Path(directory, "connections")
        files.mkdir(parents=True)
        report.say("connection files are good", connection_files_are_good(deployment, program, files))
    servers = [(where, Server(program, directory, number, deployment, container)) for number, (where, _, _, container) in enumerate(deployment.containers())
               if is_skycap(container)]
    for _, server in servers:
        server.start()
    for where, server in servers:
        why = server.try_it()
        report.say(f"{where} starts, answers its probes and joins the cluster that it names", [why] if why else [])
        if value_of(server.arguments, "--registry") and not why:
            report.say("volumes of each class have their topology", topologies_fit(deployment, program, value_of(server.arguments, "--endpoint").removeprefix("unix://")))
    for where, server in reversed(servers):
        why = server.stop()
        report.say(f"{where} ends", [why] if why else [])


def main():
    program, deployment = Program(sys.argv[1]), Deployment(sys.argv[2])
    report = Report()
    for fact in FACTS:
        report.say(fact.__name__.replace("_", " "), fact(deployment, program))
    check_running(report, deployment, program, sys.argv[3], sys.argv[4])
    return report.end()


sys.exit(main())
