# SPDX-License-Identifier: Apache-2.0
"""What must be there, by what was begun and what was answered.

A thing is a volume or a snapshot. Its content is a dict: the name of a file, or of a slot of a block
device, to (seed, size). Where an answer was lost, several contents are possible; a check finds out
which of them is there.
"""

import random
import threading

MAYBE = "maybe"  # asked for, not answered: it may be there
THERE = "there"
DELETING = "deleting"  # a delete was begun: it may be gone
GONE = "gone"
SLOT_BYTES = 64 << 10
SLOTS = 16


def content_bytes(seed, size):
    return random.Random(seed).randbytes(size)


class Thing:
    def __init__(self, name, is_snapshot, kind, request, source=None):
        self.name = name
        self.is_snapshot = is_snapshot
        self.kind = kind  # tree or block
        self.request = request  # to ask for it again
        self.source = source
        self.state = MAYBE
        self.id = None
        self.node = None  # where it is; None: unknown
        self.contents = []  # the possible ones
        self.loose = set()  # names in them of which nobody knows what is there: their write was cut off
        self.size = 0
        self.sizes_maybe = []
        self.is_busy = False
        self.paths = []  # (node, path): where it may still be published
        self.follows = False
        self.may_move = False  # a move was begun and not answered: its data may be sent still
        self.is_spread = False  # other nodes may have copies
        self.has_moved = False  # other nodes may have rows of it
        self.copies = set()  # of a snapshot: nodes that must have it, or a copy

    @property
    def method(self):
        return "CreateSnapshot" if self.is_snapshot else "CreateVolume"

    @property
    def what(self):
        return "snapshot" if self.is_snapshot else "volume"

    def handle(self):
        return self.id.rpartition("/")[2]

    def add_content(self, content):
        if content not in self.contents:
            self.contents.append(dict(content))

    def take_contents_of_source(self):
        """For each attempt: what it copies, if it is this one that succeeds."""
        for content in self.source.contents if self.source else [{}]:
            self.add_content(content)
        if self.source:
            self.loose |= self.source.loose

    def begin_write(self, name):
        self.loose.add(name)

    def end_write(self, name, seed, size):
        self.loose.discard(name)
        for content in self.contents:
            content[name] = (seed, size)


class Model:
    """Any thread. Who has taken a thing is the only one to change it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.things = []
        self.deleted = {}  # id -> name: deletes that were answered
        self.elsewhere = set()  # those of them of which other nodes had copies or rows
        self.counter = 0

    def new_name(self, prefix):
        with self.lock:
            self.counter += 1
            return f"{prefix}-{self.counter}"

    def add(self, thing):
        """It is taken."""
        with self.lock:
            thing.is_busy = True
            self.things.append(thing)

    def take(self, rng, fits):
        """A random thing that fits, or None. release() gives it back."""
        with self.lock:
            free = [one for one in self.things if not one.is_busy and fits(one)]
            if not free:
                return None
            thing = rng.choice(free)
            thing.is_busy = True
            return thing

    def release(self, *things):
        with self.lock:
            for thing in things:
                thing.is_busy = False

    def forget(self, thing):
        with self.lock:
            if thing.id:
                self.deleted[thing.id] = thing.name
                if thing.is_spread or thing.has_moved or thing.follows:
                    self.elsewhere.add(thing.id)
            thing.state = GONE
            self.things.remove(thing)

    def count(self, is_snapshot):
        with self.lock:
            return sum(one.is_snapshot == is_snapshot for one in self.things)

    def list(self, is_snapshot):
        with self.lock:
            return [one for one in self.things if one.is_snapshot == is_snapshot]

    def ids_deleted(self):
        with self.lock:
            return dict(self.deleted)
