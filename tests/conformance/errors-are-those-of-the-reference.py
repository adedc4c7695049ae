#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The errors of docs/errors.md: each row of its tables is provoked here, and its code and message are those that come.

A row is found by its first two cells, the call and when it fails; `...` in its message stands for anything. A row that
nothing here provokes fails the test, and so does a case without a row. Rows that others provoke, or nobody, name the test
in their last cell, which must exist, and the message must be in the source. With --print, the rows are printed with the real
codes and messages. A code of the program that the page does not explain fails the test, too.
"""
# time-limit: 180

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")).resolve() / "skycap"
PAGE = ROOT / "docs/errors.md"
FACTOR = int(os.environ.get("TIME_FACTOR") or 1)
SECONDS = 20 * FACTOR
RENEWAL_SECONDS = 2 * FACTOR  # a node is lost after three times as long, so a busy machine takes none for lost
WRITER = {"mode": "SINGLE_NODE_WRITER"}
MOUNT = {"mount": {}, "access_mode": WRITER}
BLOCK = {"block": {}, "access_mode": WRITER}
MIB = 1 << 20


class Server:
    """A `skycap serve` with the back end dir, and calls to it."""

    def __init__(self, folder, name, *flags):
        self.folder, self.socket, self.data = folder, folder / f"{name}.sock", folder / f"{name}.data"
        self.log = open(folder / f"{name}.log", "w+")
        self.process = subprocess.Popen([PROGRAM, "serve", "--endpoint", f"unix://{self.socket}", "--data", self.data,
                                         "--node-id", "alpha", *flags], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + SECONDS
        while self.call("grpc.health.v1.Health/Check", {})[0] != "OK":
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"FAILED: the server does not answer:\n{self.log.read()}")
            time.sleep(0.05)

    def call(self, method, request, *flags):
        """The code and the message, or OK and the reply."""
        done = subprocess.run([PROGRAM, "call", f"unix:{self.socket}", method, json.dumps(request), *flags],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode == 0:
            return "OK", json.loads(done.stdout or "{}")
        code, _, message = done.stderr.strip().removeprefix("skycap: ").partition(": ")
        return code, message

    def do(self, method, request):
        """A call that must succeed."""
        code, reply = self.call(method, request)
        if code != "OK":
            sys.exit(f"FAILED: {method}: {code}: {reply}")
        return reply

    def volume(self, name, capability=MOUNT, **more):
        request = {"name": name, "volume_capabilities": [capability], **more}
        return self.do("csi.v1.Controller/CreateVolume", request)["volume"]["volumeId"]

    def snapshot(self, volume, name):
        request = {"source_volume_id": volume, "name": name}
        return self.do("csi.v1.Controller/CreateSnapshot", request)["snapshot"]["snapshotId"]

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(SECONDS)


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class Cluster:
    """A registry and the nodes alpha and beta, which are the same machine and have no TLS."""

    def __init__(self, folder):
        address = free_address()
        self.registry = Server(folder, "registry", "--roles", "registry", "--listen", address, "--insecure")
        self.alpha, self.beta = (
            Server(folder, f"cluster-{name}", "--backend", "dir", "--node-id", name, "--listen", free_address(),
                   "--registry", address, "--registry-delay", str(RENEWAL_SECONDS), "--insecure") for name in ("alpha", "beta"))
        self.wait_for({"alpha": "READY", "beta": "READY"})
        self.stays = self.create("stays", "alpha")
        self.there = self.create("there", "beta")
        self.create("twice", "beta")

    def wait_for(self, states):
        deadline = time.monotonic() + SECONDS
        while True:
            nodes = self.alpha.do("skycap.v1.Nodes/List", {}).get("nodes", [])
            found = {node["id"]: node.get("state") for node in nodes}
            if found == states:
                return
            if time.monotonic() > deadline:
                sys.exit(f"FAILED: the nodes are {found}, not {states}")
            time.sleep(0.1)

    def create(self, name, node):
        return self.alpha.volume(name, accessibility_requirements=on_node(node))

    def lose_beta(self):
        self.beta.process.kill()
        self.beta.process.wait(SECONDS)
        self.wait_for({"alpha": "READY", "beta": "LOST"})

    def lose_registry(self):
        self.registry.end()

    def drain(self, node, undo=False):
        self.alpha.do("skycap.v1.Nodes/Drain", {"node_id": node, "undo": undo})

    def end(self):
        for server in (self.beta, self.alpha, self.registry):
            server.end()


class Scene:
    """Everything that the cases need: a node, a server with connections, some volumes and snapshots."""

    def __init__(self, folder):
        self.folder = folder
        self.node = Server(folder, "node", "--backend", "dir", "--max-volumes", "3")
        files = folder / "connections"
        files.mkdir()
        (files / "own.yaml").write_text("{driver: local, options: {backend: dir}}")
        (files / "away.yaml").write_text(f'{{driver: csi, options: {{endpoint: "unix://{folder}/nobody.sock"}}}}')
        self.many = Server(folder, "many", "--connections", str(files))
        self.data, self.image = self.node.volume("data"), self.node.volume("image", BLOCK)
        self.used = self.node.volume("used")
        self.taken = self.node.snapshot(self.data, "taken")
        self.cluster = Cluster(folder)
        self.staging = folder / "staging"
        self.staging.mkdir()
        self.node.do("csi.v1.Controller/ControllerPublishVolume", self.attach(self.used))
        self.node.do("csi.v1.Node/NodeStageVolume", self.stage(self.used))
        self.node.do("csi.v1.Node/NodePublishVolume", self.publish(self.used, "first"))

    def end(self):
        self.node.call("csi.v1.Node/NodeUnpublishVolume", {"volume_id": self.used, "target_path": str(self.folder / "first")})
        self.node.call("csi.v1.Node/NodeUnstageVolume", {"volume_id": self.used, "staging_target_path": str(self.staging)})
        self.node.end()
        self.many.end()
        self.cluster.end()
        subprocess.run(["chattr", "-R", "-i", self.folder], stderr=subprocess.DEVNULL, check=False)

    def attach(self, volume, node="alpha"):
        return {"volume_id": volume, "node_id": node, "volume_capability": MOUNT}

    def stage(self, volume, path=None):
        return {"volume_id": volume, "staging_target_path": path or str(self.staging), "volume_capability": MOUNT}

    def publish(self, volume, target):
        return {**self.stage(volume), "target_path": str(self.folder / target)}

    def lost(self):
        """A volume whose data somebody has removed."""
        volume = self.node.volume("lost")
        shutil.rmtree(self.node.data / "volume-trees" / volume.rpartition("/")[2])
        return volume

    def full(self):
        """The node has as many volumes as it may have, and gets one more."""
        names = ["one", "two", "three"]
        *some, last = [self.node.volume(name) for name in names]
        for volume in some:
            self.node.do("csi.v1.Controller/ControllerPublishVolume", self.attach(volume))
        return self.attach(last)


def create(**request):
    return {"name": "new", "volume_capabilities": [MOUNT], **request}


def on_node(*nodes):
    return {"requisite": [{"segments": {"topology.skycap.dev/node": node}} for node in nodes]}


def after(act, *arguments):
    """The case follows something that has to be done first."""
    act(*arguments)
    return ()


# The call, when it fails, and how that is brought about: a server of the scene, a method and a request.
CONTROLLER, NODE, METADATA = "csi.v1.Controller/", "csi.v1.Node/", "csi.v1.SnapshotMetadata/"
NODES, MOVES, REGISTRY = "skycap.v1.Nodes/", "skycap.v1.Moves/", "oim.v0.Registry/"
CASES = {
    ("CreateVolume", "a required field is empty"):
        lambda s: (s.node, CONTROLLER + "CreateVolume", {"volume_capabilities": [MOUNT]}),
    ("CreateVolume", "a parameter is not known"):
        lambda s: (s.node, CONTROLLER + "CreateVolume", create(parameters={"speed": "1"})),
    ("CreateVolume", "the value of a parameter is not allowed"):
        lambda s: (s.node, CONTROLLER + "CreateVolume", create(parameters={"mobility": "fly"})),
    ("CreateVolume", "the file system is not known"):
        lambda s: (s.node, CONTROLLER + "CreateVolume",
                   create(volume_capabilities=[{"mount": {"fs_type": "ntfs"}, "access_mode": WRITER}])),
    ("CreateVolume", "I/O limits for a directory"):
        lambda s: (s.node, CONTROLLER + "CreateVolume", create(parameters={"read-bytes-per-second": "1Mi"})),
    ("CreateVolume", "the name exists, and the request differs"):
        lambda s: (s.node, CONTROLLER + "CreateVolume", create(name="data", parameters={"label": "x"})),
    ("CreateVolume", "the source does not exist"):
        lambda s: (s.node, CONTROLLER + "CreateVolume",
                   create(volume_content_source={"volume": {"volume_id": "v:local/none"}})),
    ("CreateVolume", "the limit is less than the size"):
        lambda s: (s.node, CONTROLLER + "CreateVolume",
                   create(volume_capabilities=[{"mount": {"fs_type": "xfs"}, "access_mode": WRITER}],
                          capacity_range={"limit_bytes": 2 * MIB})),
    ("CreateVolume", "the topology excludes this node"):
        lambda s: (s.node, CONTROLLER + "CreateVolume",
                   create(accessibility_requirements={"requisite": [{"segments": {"topology.skycap.dev/node": "beta"}}]})),
    ("CreateVolume", "no connection has this name"):
        lambda s: (s.many, CONTROLLER + "CreateVolume", create(parameters={"connection": "nas"})),
    ("CreateVolume", "the driver of the connection does not answer"):
        lambda s: (s.many, CONTROLLER + "CreateVolume", create(parameters={"connection": "away"})),
    ("DeleteVolume", "the volume is in use"):
        lambda s: (s.node, CONTROLLER + "DeleteVolume", {"volume_id": s.used}),
    ("ControllerPublishVolume", "the volume does not exist"):
        lambda s: (s.node, CONTROLLER + "ControllerPublishVolume", s.attach("v:local/none")),
    ("ControllerPublishVolume", "the node does not exist"):
        lambda s: (s.node, CONTROLLER + "ControllerPublishVolume", s.attach(s.data, "beta")),
    ("ControllerPublishVolume", "the node has `--max-volumes` already"):
        lambda s: (s.node, CONTROLLER + "ControllerPublishVolume", s.full()),
    ("ControllerModifyVolume", "the parameter cannot be changed"):
        lambda s: (s.node, CONTROLLER + "ControllerModifyVolume",
                   {"volume_id": s.data, "mutable_parameters": {"kind": "image"}}),
    ("ControllerExpandVolume", "the size is more than a volume can have"):
        lambda s: (s.node, CONTROLLER + "ControllerExpandVolume",
                   {"volume_id": s.data, "capacity_range": {"required_bytes": 1 << 60}}),
    ("ListVolumes, ListSnapshots", "the token is not from this list"):
        lambda s: (s.node, CONTROLLER + "ListVolumes", {"starting_token": "x"}),
    ("CreateSnapshot", "the name exists, of another volume"):
        lambda s: (s.node, CONTROLLER + "CreateSnapshot", {"name": "taken", "source_volume_id": s.image}),
    ("CreateSnapshot", "`export`, and the server has no repositories"):
        lambda s: (s.node, CONTROLLER + "CreateSnapshot",
                   {"name": "new", "source_volume_id": s.data, "parameters": {"export": "offsite"}}),
    ("CreateSnapshot", "`replicas`, and the node is in no cluster"):
        lambda s: (s.node, CONTROLLER + "CreateSnapshot",
                   {"name": "new", "source_volume_id": s.data, "parameters": {"replicas": "2"}}),
    ("GetMetadataAllocated, GetMetadataDelta", "the snapshot is of a directory"):
        lambda s: (s.node, METADATA + "GetMetadataAllocated", {"snapshot_id": s.taken}),
    ("NodeStageVolume", "the path is not absolute"):
        lambda s: (s.node, NODE + "NodeStageVolume", s.stage(s.data, "staging")),
    ("NodeStageVolume", "the data of the volume is lost"):
        lambda s: (s.node, NODE + "NodeStageVolume", s.stage(s.lost())),
    ("NodePublishVolume", "the volume is not staged"):
        lambda s: (s.node, NODE + "NodePublishVolume", s.publish(s.data, "second")),
    ("NodePublishVolume", "a volume for one writer is published elsewhere"):
        lambda s: (s.node, NODE + "NodePublishVolume", s.publish(s.used, "second")),
    ("NodePublishVolume", "the same path again, with another access"):
        lambda s: (s.node, NODE + "NodePublishVolume", {**s.publish(s.used, "first"), "readonly": True}),
    ("NodeGetVolumeStats", "the volume is not at the path"):
        lambda s: (s.node, NODE + "NodeGetVolumeStats", {"volume_id": s.data, "volume_path": str(s.folder)}),
    ("NodeExpandVolume", "ControllerExpandVolume was not called"):
        lambda s: (s.node, NODE + "NodeExpandVolume",
                   {"volume_id": s.used, "volume_path": str(s.folder / "first"),
                    "capacity_range": {"required_bytes": 1 << 50}}),
    ("Operations/Get, Cancel", "the operation does not exist"):
        lambda s: (s.node, "skycap.v1.Operations/Get", {"id": "v:local/none"}),
    ("Connections", "the server has no connections"):
        lambda s: (s.node, "skycap.v1.Connections/List", {}),
    # ---- a registry ----
    ("Registry/SetValue", "the path is empty"):
        lambda s: (s.cluster.registry, REGISTRY + "SetValue", {"value": {"path": "", "value": "x"}}),
    ("Registry/SetValue", "the address of a controller cannot be called"):
        lambda s: (s.cluster.registry, REGISTRY + "SetValue", {"value": {"path": "host-0/address", "value": "nonsense"}}),
    ("Registry/SetValue", "the id of a controller is not printable ASCII"):
        lambda s: (s.cluster.registry, REGISTRY + "SetValue", {"value": {"path": "hö/address", "value": "10.0.0.1:80"}}),
    ("Registry/SetValue", "the value is too long"):
        lambda s: (s.cluster.registry, REGISTRY + "SetValue", {"value": {"path": "host-0/note", "value": "x" * 100000}}),
    ("any call for a controller", "the controller is not registered"):
        lambda s: (s.cluster.registry, "oim.v0.Controller/CheckMallocBDev", {"bdev_name": "x"}, "--controller", "host-9"),
    ("any call of a service that the registry does not have", "no controller is named"):
        lambda s: (s.cluster.registry, "oim.v0.Controller/CheckMallocBDev", {"bdev_name": "x"}),
    # ---- a cluster ----
    ("CreateVolume", "no node fits the topology"):
        lambda s: (s.cluster.alpha, CONTROLLER + "CreateVolume", create(accessibility_requirements=on_node("gamma"))),
    ("CreateVolume", "no node has the back end"):
        lambda s: (s.cluster.alpha, CONTROLLER + "CreateVolume", create(parameters={"backend": "xfs"})),
    ("CreateVolume", "all nodes that fit are being drained"):
        # Other nodes hear of it a moment later.
        lambda s: (*after(s.cluster.drain, "beta"), s.cluster.beta, CONTROLLER + "CreateVolume",
                   create(accessibility_requirements=on_node("beta"))),
    ("ControllerPublishVolume", "the volume is on another node and does not follow"):
        lambda s: (*after(s.cluster.drain, "beta", True), s.cluster.alpha, CONTROLLER + "ControllerPublishVolume",
                   s.attach(s.cluster.stays, "beta")),
    ("CreateVolumeGroupSnapshot", "the volumes are on several nodes"):
        lambda s: (s.cluster.alpha, "csi.v1.GroupController/CreateVolumeGroupSnapshot",
                   {"name": "both", "source_volume_ids": [s.cluster.stays, s.cluster.there]}),
    ("Moves/Move", "the node does not exist"):
        lambda s: (s.cluster.alpha, MOVES + "Move", {"volume_id": s.cluster.stays, "node_id": "gamma"}),
    ("Moves/Move", "another volume there has its name"):
        lambda s: (s.cluster.alpha, MOVES + "Move", {"volume_id": s.cluster.create("twice", "alpha"), "node_id": "beta"}),
    ("Nodes/Forget", "the node is not lost"):
        lambda s: (s.cluster.alpha, NODES + "Forget", {"node_id": "beta"}),
    ("Nodes/Forget, Drain", "the node does not exist"):
        lambda s: (s.cluster.alpha, NODES + "Forget", {"node_id": "gamma"}),
    ("any call for a volume", "its node is lost"):
        lambda s: (*after(s.cluster.lose_beta), s.cluster.alpha, CONTROLLER + "ControllerGetVolume", {"volume_id": s.cluster.there}),
    ("Moves/Recover", "no node has a snapshot of it"):
        lambda s: (s.cluster.alpha, MOVES + "Recover", {"volume": s.cluster.there}),
    ("CreateVolume", "the registry does not answer, and a node has to be chosen"):
        lambda s: (*after(s.cluster.lose_registry), s.cluster.alpha, CONTROLLER + "CreateVolume", create(name="chosen")),
}


# ---- the page ----

def read_rows():
    """(call, when) -> (code, message)"""
    rows = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 5 and re.fullmatch("[A-Z_]+", cells[2]):
            rows[cells[0], cells[1]] = cells[2], cells[3].strip("`")
    return rows


def is_like(message, pattern):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), message, re.DOTALL)


def check_codes():
    """Every code that an error of the program can have stands in the first table."""
    source = (ROOT / "src/base/error.h").read_text()
    codes = set(re.findall(r"CODE_([A-Z_]+) = \d", source)) - {"OK"}
    shown = set(re.findall(r"^\| ([A-Z_]+) \|", PAGE.read_text(), re.MULTILINE))
    return [f"docs/errors.md and error.h differ about {sorted(codes ^ shown)}"] if codes != shown else []


def read_others():
    """(message, test) of the tables whose errors are not provoked here: those of the start, and the last one."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) in (3, 5) and re.fullmatch(r"none|\*first minutes\*|`tests/.*`", cells[-1]):
            yield cells[len(cells) // 2].strip("` "), cells[-1].strip("`")


def check_others():
    """The parts of their messages are in one file of the source, and their tests exist."""
    texts = [re.sub(r'"\s*"', "", path.read_text()) for path in (ROOT / "src").rglob("*.c")]
    others = list(read_others())
    wrong = [] if len(others) > 20 else [f"docs/errors.md has only {len(others)} errors with a test of their own"]
    for message, test in others:
        parts = [part.replace('"', '\\"') for part in re.split(r" ?\.\.\.+ ?", message) if len(part) > 3]
        if not any(all(part in text for part in parts) for text in texts):
            wrong.append(f"no file of src has the message: {message}")
        if test.startswith("tests/") and not (ROOT / test).exists():
            wrong.append(f"docs/errors.md names {test}, which is not there")
    return wrong


def check_cases(scene, rows, prints):
    wrong = [f"nothing provokes the row {row}" for row in rows.keys() - CASES.keys()]
    for case, provoke in CASES.items():
        server, method, request, *flags = provoke(scene)
        code, message = server.call(method, request, *flags)
        if prints:
            print(f"| {case[0]} | {case[1]} | {code} | `{message}` |  |")
        wanted = rows.get(case)
        if not wanted:
            wrong.append(f"docs/errors.md has no row {case}: {code}: {message}")
        elif wanted[0] != code or not is_like(message, wanted[1]):
            wrong.append(f"{case}: docs/errors.md says {wanted[0]}: {wanted[1]}\n    it is {code}: {message}")
    return wrong


def main():
    if os.geteuid() != 0:
        print("needs root: a volume is published")
        sys.exit(77)
    if "SKYCAP_ERRORS" not in os.environ:  # what is mounted goes with the namespace
        os.environ["SKYCAP_ERRORS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    rows = read_rows()
    with tempfile.TemporaryDirectory(prefix="skycap-errors-", dir=os.environ.get("SKYCAP_TMP")) as name:
        scene = Scene(pathlib.Path(name))
        try:
            wrong = check_codes() + check_others() + check_cases(scene, rows, "--print" in sys.argv)
        finally:
            scene.end()
    print("".join(f"FAILED: {line}\n" for line in wrong), end="")
    print(f"{len(CASES) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    sys.exit(1 if wrong else 0)


main()
