# SPDX-License-Identifier: Apache-2.0
"""After the faults: everything that was answered is there, everywhere the same, and nothing else."""

import json
import os
import subprocess

from hidden import BASE, REPLICA, read_hidden
from model import DELETING, MAYBE, SLOT_BYTES, content_bytes
from processes import wait_until

SETTLE_SECONDS = 60
RECONCILE_SECONDS = 240
COPIES_SECONDS = 90  # nodes ask each other every 30 seconds
DATA = {  # by (is_snapshot, kind): the directory of the back end, and the data below a handle
    (False, "tree"): ("volume-trees", "tree"),
    (True, "tree"): ("snapshot-trees", "tree"),
    (False, "block"): ("volume-images", "disk/image"),
    (True, "block"): ("snapshot-images", "disk/image"),
}


class Verifier:
    def __init__(self, actions):
        self.actions = actions
        self.lab = actions.lab
        self.model = actions.model
        self.journal = actions.journal
        self.turn = 0

    def node(self):
        """All in turn."""
        self.turn += 1
        return self.lab.nodes[self.turn % len(self.lab.nodes)]

    # ---- what was left open ----

    def settle(self):
        for thing in self.model.list(False) + self.model.list(True):
            for node, path in list(thing.paths):
                self.repeat(f"unpublish {thing.name}", self.unpublish, thing, node, path)
        for thing in self.model.list(False) + self.model.list(True):
            if thing.state == MAYBE:
                self.repeat(f"create {thing.name}", self.create, thing)
            if thing.sizes_maybe:
                self.repeat(f"expand {thing.name}", self.expand, thing)
        for thing in self.model.list(False) + self.model.list(True):
            if thing.state == DELETING:
                self.repeat(f"delete {thing.name}", self.delete, thing)

    def repeat(self, what, function, *arguments):
        if not wait_until(lambda: function(*arguments), SETTLE_SECONDS, 0.2):
            self.journal.problem(f"{what} has no end after {SETTLE_SECONDS} s without faults")

    def unpublish(self, thing, node, path):
        return self.actions.unpublish(thing, node, path)

    def create(self, thing):
        return self.actions.create(thing, self.node()) or thing.state != MAYBE

    def expand(self, thing):
        return self.actions.expand(thing, self.node(), max(thing.sizes_maybe))

    def delete(self, thing):
        return self.actions.delete(thing, self.node())

    # ---- operations ----

    def running(self):
        """Operations that have not ended, over all nodes; None: a node did not answer."""
        answer = self.lab.clients[self.node()].run("op", "list", seconds=10)
        if not answer.is_ok:
            return None
        operations = answer.reply.get("operations", [])
        return [one for one in operations if one.get("state", "RUNNING") == "RUNNING"]

    def check_operations(self):
        if not wait_until(lambda: self.running() == [], SETTLE_SECONDS, 0.2):
            self.journal.problem(f"operations do not end: {json.dumps(self.running())[:600]}")

    # ---- lists ----

    def check_list(self, node, is_snapshot):
        """True: the node lists what the model has, each once."""
        ids = self.actions.list_ids(node, is_snapshot)
        expected = {thing.id: thing.name for thing in self.model.list(is_snapshot)}
        if ids is not None and sorted(ids) == sorted(expected):
            return True
        lost = [name for one, name in expected.items() if one not in (ids or [])]
        more = [one for one in ids or [] if one not in expected]
        self.wrong = f"{node} lists {'snapshots' if is_snapshot else 'volumes'} wrongly: "
        self.wrong += f"lost {lost}, more {more}, of {len(ids or [])} {len(set(ids or []))} differ"
        return False

    def check_lists(self):
        for node in self.lab.nodes:
            for is_snapshot in (False, True):
                if not wait_until(lambda: self.check_list(node, is_snapshot), 20, 0.5):
                    self.journal.problem(self.wrong)

    def check_found(self):
        """Every volume, from every node."""
        for thing in self.model.list(False):
            for node in self.lab.nodes:
                # A registry that was away takes all nodes for lost until they renew.
                if not wait_until(lambda: self.actions.get(thing, node), 10, 0.5):
                    self.journal.problem(f"{thing.name} is not found from {node}")

    # ---- data ----

    def handles(self, node):
        """(directory, handle) of all data of the node."""
        root = self.lab.data_root(node)
        found = set()
        for directory, _ in DATA.values():
            if (root / directory).is_dir():
                found |= {(directory, handle) for handle in os.listdir(root / directory)}
        if (root / "making").is_dir():
            found |= {("making", name) for name in os.listdir(root / "making")}
        return found

    def check_places(self):
        """Each thing has data on exactly one node, and no other data is there. Sweeps may still run."""
        if not wait_until(self.are_places_right, 20, 0.5):
            self.journal.problem(self.wrong)

    def are_places_right(self):
        things = self.model.list(False) + self.model.list(True)
        expected = {}
        for thing in things:
            expected[DATA[thing.is_snapshot, thing.kind][0], thing.handle()] = thing
            thing.node = None
        for node in self.lab.nodes:
            hidden = read_hidden(self.lab.base / f"{node}.data" / "state.db")
            for key in self.handles(node):
                if key[0].startswith("snapshot-") and key[1] in hidden:
                    continue
                if key not in expected:
                    self.wrong = f"leaked data on {node}: {'/'.join(key)}"
                    return False
                if expected[key].node:
                    self.wrong = f"{expected[key].name} is on {expected[key].node} and on {node}"
                    return False
                expected[key].node = node
        lost = [thing.name for thing in things if not thing.node]
        self.wrong = f"no data of {lost}"
        return not lost

    def check_bases(self):
        """Of each volume at most one base is kept for each other node."""
        for node in self.lab.nodes:
            kept = [
                (one.volume, one.peer)
                for one in read_hidden(self.lab.base / f"{node}.data" / "state.db").values()
                if one.is_kept
            ]
            if len(kept) > len(set(kept)) + 2:  # the older one goes with the next transfer
                self.journal.problem(f"too many bases are kept on {node}: {sorted(kept)}")

    def left_transfers(self):
        """Hidden snapshots of transfers that have not ended. None runs any more."""
        left = []
        for node in self.lab.nodes:
            hidden = read_hidden(self.lab.base / f"{node}.data" / "state.db")
            left += [
                f"{node}: {handle}"
                for handle, one in hidden.items()
                if one.purpose == BASE and not one.is_kept
            ]
        return left

    def check_transfers(self):
        """At the end: nodes ask each other about transfers, but not often."""
        if not wait_until(lambda: not self.left_transfers(), RECONCILE_SECONDS, 1):
            self.journal.problem(f"transfers have left snapshots: {self.left_transfers()}")

    # ---- copies of snapshots ----

    def copies(self):
        """(node, handle, is_ready) of all copies of other nodes' snapshots."""
        for node in self.lab.nodes:
            hidden = read_hidden(self.lab.base / f"{node}.data" / "state.db")
            for handle, one in hidden.items():
                if one.purpose == REPLICA:
                    yield node, handle, one.is_ready

    def are_copies_right(self):
        """Of snapshots that exist, complete, and wherever an answer has promised one."""
        snapshots = {thing.handle(): thing for thing in self.model.list(True)}
        found = set()
        for node, handle, is_ready in self.copies():
            found.add((node, handle))
            if handle not in snapshots or not is_ready:
                self.wrong = f"{node} has a copy of {handle}, which is deleted or not complete"
                return False
        for handle, thing in snapshots.items():
            wanted = thing.copies - {thing.node}
            lost = sorted(node for node in wanted if (node, handle) not in found)
            if lost:
                self.wrong = f"{thing.name} has no copy on {lost}"
                return False
        return True

    def check_copies(self):
        if not wait_until(self.are_copies_right, COPIES_SECONDS, 0.5):
            self.journal.problem(self.wrong)
        snapshots = {thing.handle(): thing for thing in self.model.list(True)}
        for node, handle, _ in self.copies():
            if handle in snapshots:
                self.check_content(snapshots[handle], node)

    def check_contents(self):
        for thing in self.model.list(False) + self.model.list(True):
            if thing.node:
                self.check_content(thing, thing.node)

    def check_content(self, thing, node):
        directory, below = DATA[thing.is_snapshot, thing.kind]
        path = self.lab.data_root(node) / directory / thing.handle() / below
        reasons = []
        for content in thing.contents:
            reason = differs(path, thing.kind, content, thing.loose)
            if not reason:
                thing.contents = [content]
                return
            reasons.append(reason)
        self.journal.problem(f"the content of {thing.name} on {node} is wrong: {reasons}")

    # ---- all ----

    def check(self):
        self.settle()
        self.check_operations()
        self.check_lists()
        self.check_found()
        self.check_places()
        self.check_bases()
        self.check_contents()
        self.check_copies()

    def check_stopped(self):
        """All servers have ended: the doctor finds nothing."""
        for node in self.lab.nodes:
            words = ["doctor", "--data", str(self.lab.base / f"{node}.data"), "-o", "json"]
            done = subprocess.run([self.lab.skycap, *words], capture_output=True, text=True)
            if done.returncode != 0 or done.stdout.strip():
                self.journal.problem(f"doctor of {node}: {done.stdout[:600]} {done.stderr[:300]}")


def read_slot(path, name, size):
    with open(path, "rb") as file:
        file.seek(int(name) * SLOT_BYTES)
        return file.read(size)


def differs(path, kind, content, loose):
    """What is not as it should be, or None. `loose`: names of which nobody knows what is there."""
    known = {name: one for name, one in content.items() if name not in loose}
    for name, (seed, size) in known.items():
        try:
            found = read_slot(path, name, size) if kind == "block" else (path / name).read_bytes()
        except OSError as error:
            return str(error)
        if found != content_bytes(seed, size):
            return f"{name} of {size} bytes differs"
    more = set() if kind == "block" else set(os.listdir(path)) - set(known) - loose
    return f"there is also {sorted(more)}" if more else None
