# SPDX-License-Identifier: Apache-2.0
"""Clients that use the cluster at random, each on a thread of its own."""

import threading
import time
import traceback

from actions import PAGE, volume_request
from model import DELETING, MAYBE, THERE, Thing

MOST_VOLUMES = 24
MOST_SNAPSHOTS = 12
TREE_BYTES = (64 << 20, 256 << 20, 1 << 30)
BLOCK_BYTES = 4 << 20
PAUSE_SECONDS = 0.1


def is_there(thing):
    return thing.state == THERE


class Worker(threading.Thread):
    def __init__(self, actions, rng, stopping, options):
        super().__init__(daemon=True)
        self.actions = actions
        self.model = actions.model
        self.rng = rng
        self.stopping = stopping
        self.options = options

    def run(self):
        while not self.stopping.is_set():
            try:
                self.choose()()
            except Exception:
                self.actions.journal.problem("the test itself: " + traceback.format_exc())
                return
            time.sleep(self.rng.uniform(0, PAUSE_SECONDS))

    def choose(self):
        """More deletes when there is much."""
        is_full = self.model.count(False) > MOST_VOLUMES
        has_snapshots = self.model.count(True) > MOST_SNAPSHOTS
        weights = [
            (self.create, 1 if is_full else 4),
            (self.write, 5),
            (self.snapshot, 1 if has_snapshots else 3),
            (self.copy, 1 if is_full else 6),
            (self.delete, 6 if is_full else 2),
            (self.delete_snapshot, 4 if has_snapshots else 1),
            (self.repeat, 3),
            (self.expand, 1),
            (self.spread, 3),
            (self.look, 1),
            (self.get, 2),
        ]
        if self.options.moves:
            weights.append((self.move, 5))
        functions, numbers = zip(*weights)
        return self.rng.choices(functions, numbers)[0]

    def entry(self):
        """The node that a call is made at: mostly one that answers."""
        lab = self.actions.lab
        nodes = [node for node in lab.nodes if lab.processes[node].answers()]
        return self.rng.choice(nodes if nodes and self.rng.random() < 0.95 else lab.nodes)

    def taken(self, fits):
        return self.model.take(self.rng, fits)

    # ---- making ----

    def begin(self, thing):
        self.model.add(thing)
        for _ in range(self.rng.randint(1, 3)):
            if self.actions.create(thing, self.entry()) or thing.state != MAYBE:
                break
        self.model.release(thing)

    def create(self):
        kind = self.rng.choice(["tree", "tree", "block"])
        node = self.rng.choice([*self.actions.lab.nodes, None])
        size = BLOCK_BYTES if kind == "block" else self.rng.choice(TREE_BYTES)
        follows = self.options.moves and self.rng.random() < 0.4
        parameters = {"mobility": "follow"} if follows else {}
        name = self.model.new_name("v")
        request = volume_request(name, kind, size, node, None, parameters)
        thing = Thing(name, False, kind, request)
        thing.follows = follows
        self.begin(thing)

    def snapshot(self):
        volume = self.taken(lambda one: is_there(one) and not one.is_snapshot)
        if not volume:
            return
        name = self.model.new_name("s")
        request = {"name": name, "sourceVolumeId": volume.id}
        self.begin(Thing(name, True, volume.kind, request, volume))
        self.model.release(volume)

    def copy(self):
        """A clone of a volume or of a snapshot, mostly on another node."""
        source = self.taken(is_there)
        if not source:
            return
        node = self.rng.choice([*self.actions.lab.nodes, None])
        name = self.model.new_name("c")
        request = volume_request(name, source.kind, source.size, node, source)
        self.actions.lab.begin_copy(source.node, node)
        self.begin(Thing(name, False, source.kind, request, source))
        self.model.release(source)

    def repeat(self):
        """What was begun and not answered, as an orchestrator does."""
        thing = self.taken(lambda one: one.state in (MAYBE, DELETING))
        if not thing:
            return
        if thing.state == DELETING:
            self.actions.delete(thing, self.entry())
        elif not thing.source or self.holds_source(thing):
            self.actions.create(thing, self.entry())
            if thing.source:
                self.model.release(thing.source)
        self.model.release(thing)

    def holds_source(self, thing):
        return self.taken(lambda one: one is thing.source) is not None

    # ---- the rest ----

    def write(self):
        volume = self.taken(lambda one: is_there(one) and not one.is_snapshot)
        if not volume:
            return
        node = self.rng.choice(self.actions.lab.nodes) if volume.follows else volume.node
        for at, path in list(volume.paths):
            self.actions.unpublish(volume, at, path)
        if node and not volume.paths:
            self.actions.write(volume, node, self.rng)
        else:
            self.actions.get(volume, self.entry())
        self.model.release(volume)

    def remove(self, is_snapshot):
        thing = self.taken(lambda one: is_there(one) and one.is_snapshot == is_snapshot)
        if not thing:
            return
        for _ in range(self.rng.randint(1, 2)):
            if thing.paths or self.actions.delete(thing, self.entry()):
                break
        self.model.release(thing)

    def delete(self):
        self.remove(False)

    def delete_snapshot(self):
        self.remove(True)

    def expand(self):
        volume = self.taken(lambda one: is_there(one) and not one.is_snapshot)
        if volume:
            size = max([volume.size, *volume.sizes_maybe]) + (1 << 20)
            self.actions.expand(volume, self.entry(), size)
            self.model.release(volume)

    def spread(self):
        snapshot = self.taken(lambda one: is_there(one) and one.is_snapshot)
        if snapshot:
            nodes = self.actions.lab.nodes
            targets = self.rng.sample(nodes, self.rng.randint(1, len(nodes)))
            self.actions.lab.begin_copy(snapshot.node, targets[0])
            self.actions.spread(snapshot, self.entry(), targets)
            self.model.release(snapshot)

    def move(self):
        volume = self.taken(lambda one: is_there(one) and not one.is_snapshot)
        if volume:
            target = self.rng.choice(self.actions.lab.nodes)
            self.actions.lab.begin_copy(volume.node, target)
            self.actions.move(volume, self.entry(), target)
            self.model.release(volume)

    def get(self):
        volume = self.taken(lambda one: is_there(one) and not one.is_snapshot)
        if volume:
            self.actions.get(volume, self.entry())
            self.model.release(volume)

    def look(self):
        self.actions.look(self.entry(), self.rng.random() < 0.5, self.rng.choice([0, PAGE]))
