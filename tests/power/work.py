# SPDX-License-Identifier: Apache-2.0
"""What keeps a guest busy until the power is cut: calls of all kinds, chosen by chance."""

import random

from calls import MIB

SIZES = {"tree": 64 * MIB, "ext4": 64 * MIB, "xfs": 320 * MIB, "block": 16 * MIB}
WEIGHTS = {
    "create": 6,
    "write": 8,
    "snapshot": 5,
    "clone": 4,
    "restore": 3,
    "expand": 4,
    "modify": 2,
    "delete": 4,
    "delete_snapshot": 3,
    "attach": 1,
    "detach": 1,
    "unpublish": 3,
    "ephemeral": 2,
    "group": 1,
    "delete_group": 1,
}
EXPORT_WEIGHTS = {"export": 10, "import_export": 4, "remove_export": 2, "prune": 1}
MOST_VOLUMES = 5  # of one worker; of snapshots too
# Operations that choose what they are done to; the others are given a volume.
OF_ALL = {"create", "restore", "group", "delete_group", "delete_snapshot", "ephemeral"}
OF_ALL |= set(EXPORT_WEIGHTS)
MOST_FILES = 40  # of one volume
MOST_GROUPS = 4  # of all workers
MOST_BYTES = 600 * MIB


class Worker:
    """Works on its own volumes, and knows by their names which these are."""

    def __init__(self, guest, number):
        self.guest, self.calls, self.model = guest, guest.calls, guest.model
        self.rng = random.Random(guest.task["seed"] * 100 + number)
        self.prefix = f"w{number}-"
        self.published = set()
        self.names = 0
        self.weights = dict(WEIGHTS, **(EXPORT_WEIGHTS if guest.task["exports"] else {}))

    def run(self):
        while True:
            names = self.own(self.model.volumes)
            if not names:
                self.create(names)
                continue
            op = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
            if op in OF_ALL:
                getattr(self, op)(names)
            else:
                name = self.rng.choice(names)
                getattr(self, op)(name, self.model.volumes[name])

    def new_name(self):
        self.names += 1
        return f"{self.prefix}r{self.guest.task['round']}-{self.names}"

    def own(self, things):
        return [name for name in self.model.there(things) if name.startswith(self.prefix)]

    def own_snapshots(self):
        """Those that were answered, and are in no group."""
        names = self.own(self.model.snapshots)
        found = [(name, self.model.snapshots[name]) for name in names]
        return [name for name, one in found if one["is_exact"] and not one["group"]]

    def has_room(self):
        return len(self.own(self.model.volumes)) < MOST_VOLUMES

    def is_usable(self, name):
        """Publishes it if it is not."""
        if name not in self.published and self.calls.publish(name):
            self.published.add(name)
        return name in self.published

    def is_unused(self, name):
        """Unpublishes and detaches it if it is not."""
        is_unpublished = name not in self.published or self.let_go(name)
        if self.model.volumes[name]["attached"]:
            self.calls.detach(name)
        return is_unpublished

    def let_go(self, name):
        """If it fails half of it may be done: it is published anew before it is used again."""
        self.published.discard(name)
        return self.calls.unpublish(name)

    def parameters(self):
        """Images are written in place without any of these."""
        if not self.guest.task["compresses"] or self.rng.random() < 0.6:
            return {}
        return self.rng.choice([{"compression": "zstd"}, {"nocow": "false"}])

    # ---- operations on all ----

    def create(self, names):
        if len(names) >= MOST_VOLUMES:
            return
        name, kind = self.new_name(), self.rng.choice(self.guest.task["kinds"])
        size = SIZES[kind] + self.rng.randrange(0, 8) * MIB
        if self.calls.create(name, kind, size, parameters=self.parameters()):
            if self.rng.random() < 0.5 and self.is_usable(name):
                self.calls.write(name, self.rng.random() < 0.8)

    def restore(self, _):
        names = self.own_snapshots()
        if names and self.has_room():
            name = self.rng.choice(names)
            snapshot = self.model.snapshots[name]
            self.calls.create(
                self.new_name(),
                snapshot["kind"],
                snapshot["size"] + self.growth(),
                ("snapshot", name),
            )

    def growth(self):
        return self.rng.randrange(0, 3) * 16 * MIB

    def group(self, names):
        if len(names) > 1 and len(self.model.groups) < MOST_GROUPS:
            self.calls.group(self.new_name(), self.rng.sample(names, min(3, len(names))))

    def delete_group(self, _):
        names = self.own(self.model.groups)
        if names:
            self.calls.delete_group(self.rng.choice(names))

    def delete_snapshot(self, _):
        names = self.own_snapshots()
        if names:
            self.calls.delete_snapshot(self.rng.choice(names))

    def ephemeral(self, _):
        name = "csi-" + self.new_name()
        if (
            self.calls.ephemeral(name, self.rng.choice(["tree", "ext4"]))
            and self.rng.random() < 0.6
        ):
            self.calls.unephemeral(name)

    def export(self, _):
        names = [name for name in self.own_snapshots() if name not in self.model.exports]
        if names and len(self.own(self.model.exports)) < MOST_VOLUMES:
            self.calls.export(self.rng.choice(names))

    def import_export(self, _):
        names = self.own(self.model.exports)
        if names and self.has_room():
            name = self.rng.choice(names)
            export = self.model.exports[name]
            self.calls.create(self.new_name(), export["kind"], export["size"], ("export", name))

    def remove_export(self, _):
        names = self.own(self.model.exports)
        if names:
            self.calls.remove_export(self.rng.choice(names))

    def prune(self, _):
        self.calls.prune()

    # ---- operations on one volume ----

    def write(self, name, volume):
        for _ in range(self.rng.randrange(1, 4)):
            if len(volume["files"]) < MOST_FILES and self.is_usable(name):
                self.calls.write(name, self.rng.random() < 0.7)

    def snapshot(self, name, volume):
        if len(self.own_snapshots()) < MOST_VOLUMES:
            if (
                self.rng.random() < 0.5
                and len(volume["files"]) < MOST_FILES
                and self.is_usable(name)
            ):
                self.calls.write(name, False)
            self.calls.snapshot(self.new_name(), name, waits=self.rng.random() < 0.7)

    def clone(self, name, volume):
        if self.has_room():
            self.calls.create(
                self.new_name(),
                volume["kind"],
                volume["size"] + self.growth(),
                ("volume", name),
                self.parameters(),
            )

    def expand(self, name, volume):
        """The kernel lets only CAP_SYS_RESOURCE grow a mounted ext4."""
        if (
            volume["kind"] == "ext4"
            and not self.guest.task["grows_ext4"]
            and not self.is_unused(name)
        ):
            return
        if volume["size"] < MOST_BYTES:
            self.calls.expand(
                name, volume["size"] + self.rng.choice([4, 32]) * MIB, name in self.published
            )

    def modify(self, name, volume):
        asked = volume["parameters"]
        is_in_place = volume["kind"] != "tree" and not ("compression" in asked or "nocow" in asked)
        if self.guest.task["compresses"] and not is_in_place:
            self.calls.modify(name, {"compression": self.rng.choice(["zstd", "lzo", "none"])})
        else:
            self.calls.modify(name, {"label": f"label-{self.rng.randrange(1000)}"})

    def delete(self, name, _):
        if self.is_unused(name):
            self.calls.delete(name)

    def attach(self, name, volume):
        if not volume["attached"]:
            self.calls.attach(name)

    def detach(self, name, volume):
        if volume["attached"]:
            self.calls.detach(name)

    def unpublish(self, name, _):
        if name in self.published:
            self.let_go(name)
