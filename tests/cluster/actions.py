# SPDX-License-Identifier: Apache-2.0
"""What a client of the cluster does: one attempt of each call, and what the model learns from it."""

import os
import stat

from lab import TOPOLOGY
from model import DELETING, GONE, SLOT_BYTES, SLOTS, THERE, content_bytes

CONTROLLER = "csi.v1.Controller/"
SECONDS = 10  # the deadline of a call
MOVE_SECONDS = 20
MOVING = frozenset(["ABORTED", "FAILED_PRECONDITION"])
PAGE = 7
SIZES = (1, 5_000, 70_000, 3_000_000, 12_000_000, 30_000_000)
LARGE = 60_000_000  # no volume gets more, or more than a half of its size


def capability(kind):
    mode = {"accessMode": {"mode": "SINGLE_NODE_WRITER"}}
    return dict(mode, block={}) if kind == "block" else dict(mode, mount={})


def volume_request(name, kind, size, node=None, source=None, parameters=None):
    request = {
        "name": name,
        "volumeCapabilities": [capability(kind)],
        "capacityRange": {"requiredBytes": str(size)},
        "parameters": parameters or {},
    }
    if node:
        terms = [{"segments": {TOPOLOGY: node}}]
        request["accessibilityRequirements"] = {"requisite": terms, "preferred": terms}
    if source and source.is_snapshot:
        request["volumeContentSource"] = {"snapshot": {"snapshotId": source.id}}
    elif source:
        request["volumeContentSource"] = {"volume": {"volumeId": source.id}}
    return request


def node_of(volume):
    """None: the answer names none, or several."""
    terms = volume.get("accessibleTopology", [])
    return terms[0]["segments"].get(TOPOLOGY) if len(terms) == 1 else None


def is_of_node_that_answers(entry):
    """The volumes of a node that does not answer are listed as they were seen last, and say so."""
    return not entry.get("status", {}).get("volumeCondition", {}).get("abnormal", False)


def write_all(descriptor, data, offset):
    if os.pwrite(descriptor, data, offset) != len(data):
        raise OSError("it is full, and should not be")
    os.fsync(descriptor)


def write_slot(path, slot, data):
    with open(path, "r+b", buffering=0) as device:
        if not stat.S_ISBLK(os.fstat(device.fileno()).st_mode):
            raise OSError("it is not published")
        write_all(device.fileno(), data, slot * SLOT_BYTES)


def mount_of(path):
    """The id of its mount. A volume on `dir` is on the same device as the directory that it is mounted on."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return mount_id(directory)
    finally:
        os.close(directory)


def mount_id(descriptor):
    with open(f"/proc/self/fdinfo/{descriptor}") as facts:
        return next(line for line in facts if line.startswith("mnt_id:"))


def write_new_file(path, name, data):
    """Durably, with its name. The volume may be unmounted meanwhile: nothing is written beside it."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if mount_id(directory) == mount_of(os.path.dirname(path)):
            raise OSError("it is not published")
        file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o666, dir_fd=directory)
        try:
            write_all(file, data, 0)
        finally:
            os.close(file)
        os.fsync(directory)
    finally:
        os.close(directory)


class Actions:
    def __init__(self, lab, model, journal, moves):
        self.lab = lab
        self.model = model
        self.journal = journal
        self.moves = moves  # a list may have what moves at the same time both here and there

    def call(self, node, what, method, request, allowed=()):
        answer = self.lab.clients[node].call(CONTROLLER + method, request, SECONDS)
        return self.journal.judge(what, node, answer, SECONDS, allowed)

    # ---- making and deleting ----

    def create(self, thing, node):
        """True: it is there. A snapshot that is not ready may still vanish."""
        thing.take_contents_of_source()
        source = thing.source
        allowed = {"ABORTED"}
        if source and source.state in (DELETING, GONE):
            allowed.add("NOT_FOUND")
        if source:  # a tree was written to while it was copied
            allowed.add("FAILED_PRECONDITION")
        what = f"{thing.method} {thing.name}"
        answer = self.call(node, what, thing.method, thing.request, allowed)
        if answer.code == "NOT_FOUND":
            self.model.forget(thing)
        if not answer.is_ok:
            return False
        reply = answer.reply["snapshot" if thing.is_snapshot else "volume"]
        if thing.is_snapshot and not reply.get("readyToUse"):
            return False
        self.learn(thing, reply)
        return True

    def learn(self, thing, reply):
        thing.id = reply["snapshotId" if thing.is_snapshot else "volumeId"]
        thing.size = int(reply.get("sizeBytes" if thing.is_snapshot else "capacityBytes", 0))
        thing.node = thing.source.node if thing.is_snapshot else node_of(reply)
        thing.state = THERE

    def delete(self, thing, node):
        """True: it is gone for ever."""
        thing.state = DELETING
        method = "DeleteSnapshot" if thing.is_snapshot else "DeleteVolume"
        allowed = {"ABORTED"}
        if thing.paths or thing.follows or thing.is_spread or thing.may_move:
            allowed.add("FAILED_PRECONDITION")
        request = {"snapshotId" if thing.is_snapshot else "volumeId": thing.id}
        if self.call(node, f"{method} {thing.name}", method, request, allowed).is_ok:
            self.model.forget(thing)
            return True
        return False

    # ---- changing ----

    def expand(self, thing, node, size):
        thing.sizes_maybe.append(size)
        request = {
            "volumeId": thing.id,
            "capacityRange": {"requiredBytes": str(size)},
            "volumeCapability": capability(thing.kind),
        }
        what = f"ControllerExpandVolume {thing.name}"
        answer = self.call(node, what, "ControllerExpandVolume", request, MOVING)
        if not answer.is_ok:
            return False
        thing.size = int(answer.reply["capacityBytes"])
        thing.sizes_maybe = []
        if thing.size < size:
            self.journal.problem(f"{what}: {size} asked for, {thing.size} answered")
        return True

    def move(self, thing, node, target):
        """True: it is on the target."""
        before, thing.node = thing.node, None
        thing.may_move = thing.has_moved = True
        request = {"volumeId": thing.id, "nodeId": target}
        answer = self.lab.clients[node].call("skycap.v1.Moves/Move", request, MOVE_SECONDS)
        what = f"move {thing.name} from {before} to {target}"
        self.journal.judge(what, node, answer, MOVE_SECONDS, MOVING)
        if answer.is_ok:
            thing.node = target
            thing.may_move = False
        return answer.is_ok

    def spread(self, thing, node, targets):
        """To several nodes. They do it in the background; what was begun has to end well."""
        what = f"spread {thing.name} to {targets}"
        thing.is_spread = True
        request = {"snapshotId": thing.id, "nodeIds": targets}
        answer = self.lab.clients[node].call("skycap.v1.Replicas/Spread", request, SECONDS)
        self.journal.judge(what, node, answer, SECONDS, {"ABORTED", "NOT_FOUND"})
        if not answer.is_ok:
            return
        for target in answer.reply.get("targets", []):
            if not target.get("errorCode"):
                thing.copies.add(target["nodeId"])

    # ---- writing ----

    def node_call(self, node, thing, method, more, allowed=MOVING):
        """Of the service Controller or Node, with the fields that most of them have."""
        service = "csi.v1.Controller/" if method.startswith("Controller") else "csi.v1.Node/"
        request = {"volumeId": thing.id, **more}
        answer = self.lab.clients[node].call(service + method, request, SECONDS)
        return self.journal.judge(f"{method} {thing.name}", node, answer, SECONDS, allowed)

    def publish(self, thing, node, path):
        more = {"nodeId": node, "volumeCapability": capability(thing.kind)}
        answer = self.node_call(node, thing, "ControllerPublishVolume", more)
        if not answer.is_ok:
            return False
        del more["nodeId"]
        more["publishContext"] = answer.reply.get("publishContext", {})
        more["stagingTargetPath"] = path + ".staged"
        if not self.node_call(node, thing, "NodeStageVolume", more).is_ok:
            return False
        more["targetPath"] = path
        return self.node_call(node, thing, "NodePublishVolume", more).is_ok

    def unpublish(self, thing, node, path):
        """All three steps are answered with OK where there is nothing to undo."""
        steps = [
            ("NodeUnpublishVolume", {"targetPath": path}),
            ("NodeUnstageVolume", {"stagingTargetPath": path + ".staged"}),
            ("ControllerUnpublishVolume", {"nodeId": node}),
        ]
        for method, more in steps:
            if not self.node_call(node, thing, method, more, {"ABORTED"}).is_ok:
                return False
        thing.paths.remove((node, path))
        return True

    def write(self, thing, node, rng):
        """Publishes it on the node, writes one file, unpublishes it."""
        path = f"{self.lab.base}/at/{node}/{thing.name}"
        cuts = self.lab.cuts(node)
        os.makedirs(path + ".staged", exist_ok=True)
        if (node, path) not in thing.paths:
            thing.paths.append((node, path))
        if self.publish(thing, node, path):
            try:
                self.write_file(thing, node, path, rng)
            except OSError as error:
                if cuts == self.lab.cuts(node):
                    self.journal.problem(f"write to {thing.name} at {node}: {error}")
        self.unpublish(thing, node, path)

    def write_file(self, thing, node, path, rng):
        cuts = self.lab.cuts(node)
        seed = rng.getrandbits(48)
        if thing.kind == "block":
            name, size = f"{rng.randrange(SLOTS)}", SLOT_BYTES
        else:
            name = f"{seed:012x}"
            used = max(sum(size for _, size in one.values()) for one in thing.contents)
            room = min(thing.size // 2, LARGE) - used
            size = rng.choice([one for one in SIZES if one < room] or SIZES[:1])
        thing.begin_write(name)
        if thing.kind == "block":
            write_slot(path, int(name), content_bytes(seed, size))
        else:
            write_new_file(path, name, content_bytes(seed, size))
        if cuts != self.lab.cuts(node):  # it may have been written to memory that is gone
            raise OSError("the power was cut")
        thing.end_write(name, seed, size)
        self.journal.write("wrote", thing.name, name, size)

    # ---- asking ----

    def get(self, thing, node):
        what = f"ControllerGetVolume {thing.name}"
        request = {"volumeId": thing.id}
        answer = self.call(node, what, "ControllerGetVolume", request, {"ABORTED"})
        if answer.is_ok:
            thing.node = node_of(answer.reply["volume"]) or thing.node
        return answer.is_ok

    def list_ids(self, node, is_snapshot, page=0, is_told=lambda entry: True):
        """The ids of a whole list, in its order, or None; of entries for which is_told is true."""
        method = "ListSnapshots" if is_snapshot else "ListVolumes"
        ids, token = [], ""
        while True:
            request = {"maxEntries": page, "startingToken": token}
            answer = self.call(node, method, method, request)
            if not answer.is_ok:
                return None
            for entry in filter(is_told, answer.reply.get("entries", [])):
                ids.append(
                    entry["snapshot"]["snapshotId"] if is_snapshot else entry["volume"]["volumeId"]
                )
            token = answer.reply.get("nextToken", "")
            if not token:
                return ids

    def look(self, node, is_snapshot, page):
        """No id twice, and none whose deletion was answered before."""
        deleted = self.model.ids_deleted()
        if not self.journal.is_calm:  # a node with a copy, or that had it before a move, may not have heard of it
            deleted = {one: name for one, name in deleted.items() if one not in self.model.elsewhere}
        ids = self.list_ids(node, is_snapshot, page, is_of_node_that_answers)
        for one in ids or []:
            if one in deleted:
                self.journal.problem(f"{deleted[one]} was deleted, and {node} lists it")
        twice = sorted(one for one in set(ids or []) if ids.count(one) > 1)
        if twice and not self.moves:
            self.journal.problem(f"{node} lists something twice: {twice}")
