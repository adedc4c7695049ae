#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The errors of docs/errors.md: each row of its tables is provoked here, and its code and message are those that come.

A row is found by its first two cells, the call and when it fails; `...` in its message stands for anything. A row that
nothing here provokes fails the test, and so does a case without a row. With --print, the rows are printed with the real
codes and messages. A code of the program that the page does not explain fails the test, too.
"""
# time-limit: 180

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")).resolve() / "skycap"
PAGE = ROOT / "docs/errors.md"
SECONDS = 20 * int(os.environ.get("TIME_FACTOR") or 1)
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

    def call(self, method, request):
        """The code and the message, or OK and the reply."""
        done = subprocess.run([PROGRAM, "call", f"unix:{self.socket}", method, json.dumps(request)],
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
        self.process.terminate()
        self.process.wait(SECONDS)


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


# The call, when it fails, and how that is brought about: a server of the scene, a method and a request.
CONTROLLER, NODE, METADATA = "csi.v1.Controller/", "csi.v1.Node/", "csi.v1.SnapshotMetadata/"
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


def check_starts():
    """The messages of a server that does not start: their parts are in the source."""
    texts = [re.sub(r'"\s*"', "", path.read_text()) for path in (ROOT / "src").rglob("*.c")]
    section = PAGE.read_text().partition("## At the start")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| [^|]* \| `+ ?(.*?) ?`+ \|$", section, re.MULTILINE)
    wrong = [] if messages else ["docs/errors.md has no messages of the start"]
    for message in messages:
        parts = [part.replace('"', '\\"') for part in re.split(r" ?\.\.\. ?", message) if len(part) > 3]
        if not any(all(part in text for part in parts) for text in texts):
            wrong.append(f"no file of src has the message: {message}")
    return wrong


def check_cases(scene, rows, prints):
    wrong = [f"nothing provokes the row {row}" for row in rows.keys() - CASES.keys()]
    for case, provoke in CASES.items():
        server, method, request = provoke(scene)
        code, message = server.call(method, request)
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
            wrong = check_codes() + check_starts() + check_cases(scene, rows, "--print" in sys.argv)
        finally:
            scene.end()
    print("".join(f"FAILED: {line}\n" for line in wrong), end="")
    print(f"{len(CASES) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    sys.exit(1 if wrong else 0)


main()
