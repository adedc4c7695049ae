# SPDX-License-Identifier: Apache-2.0
"""What must be there after a power cut, by what was begun and what was answered.

The same code runs outside (it reads the record that the guest left) and in the guest (its workers
ask it what they have). An event is a dict: `event` is begin, done, fail or resolve, `op` the
operation; the method EVENT_OP below takes it. What was begun and not answered may be there or not.

A file is [seed, size, state], and the state one of these:
"""

LOOSE = 0  # written, not synced: may be lost
SYNCED = 1  # must be there, whole
UNKNOWN = 2  # a part of it was found: it is there, and nobody was promised what is in it


def copied(files):
    return {name: list(file) for name, file in files.items()}


def promise_all(files):
    """A copy was answered: it has all that was written before, synced or not."""
    for file in files.values():
        if file[2] == LOOSE:
            file[2] = SYNCED


def keep_found(files, event):
    """What is gone is forgotten. What is there and not synced may be lost by the next cut."""
    for name in event["gone"]:
        del files[name]
    for name, file in files.items():
        if name not in event["whole"]:
            file[2] = UNKNOWN


def new_volume(event, **more):
    return dict(
        state="maybe",
        kind=event["kind"],
        size=0,
        sizes_maybe=[],
        is_exact=True,
        files={},
        attached=False,
        parameters={},
        round=event["round"],
        **more,
    )


class Model:
    def __init__(self, state=None):
        state = state or {}
        self.volumes = state.get("volumes", {})
        self.snapshots = state.get("snapshots", {})
        self.groups = state.get("groups", {})
        self.exports = state.get("exports", {})  # by the name of the snapshot
        self.has_repository = state.get("has_repository", False)
        self.deleted = state.get("deleted", [])  # ids

    def state(self):
        return {
            "volumes": self.volumes,
            "snapshots": self.snapshots,
            "groups": self.groups,
            "exports": self.exports,
            "has_repository": self.has_repository,
            "deleted": self.deleted,
        }

    def apply(self, event):
        method = getattr(self, f"{event['event']}_{event.get('op', '')}", None)
        if method:
            method(event)

    def there(self, things):
        # A copy: other workers add things meanwhile.
        return [name for name, thing in list(things.items()) if thing["state"] == "there"]

    # ---- volumes ----

    def begin_create(self, event):
        if event["name"] in self.volumes:
            # Asked again after a cut: the source may have lost what was not synced.
            self.volumes[event["name"]]["is_repeated"] = True
            return
        volume = new_volume(
            event, asked=event["size"], source=event["source"], source_id=event["source_id"]
        )
        volume["parameters"] = event["parameters"]
        if event["source"]:
            volume["files"] = copied(self.source(event["source"])["files"])
        self.volumes[event["name"]] = volume

    def source(self, source):
        kind, name = source
        things = {"volume": self.volumes, "snapshot": self.snapshots, "export": self.exports}
        return things[kind][name]

    def done_create(self, event):
        volume = self.volumes[event["name"]]
        volume.update(state="there", id=event["id"], size=event["size"])
        if not volume.pop("is_repeated", False):
            promise_all(volume["files"])

    def fail_create(self, event):
        """If it is made later all the same, its source may have been written to meanwhile."""
        self.volumes[event["name"]]["is_exact"] = False

    def begin_delete(self, event):
        self.volumes[event["name"]]["state"] = "deleting"

    def done_delete(self, event):
        self.deleted.append(self.volumes.pop(event["name"])["id"])

    def begin_expand(self, event):
        """If it is not answered, the data may have grown; the row may follow later."""
        self.volumes[event["name"]]["sizes_maybe"].append(event["size"])

    def done_expand(self, event):
        self.resolve_size(event)

    def begin_modify(self, event):
        volume = self.volumes[event["name"]]
        volume["parameters_maybe"] = dict(volume["parameters"], **event["parameters"])

    def done_modify(self, event):
        volume = self.volumes[event["name"]]
        volume["parameters"] = volume.pop("parameters_maybe")

    def begin_attach(self, event):
        self.volumes[event["name"]]["attached"] = None  # nobody knows

    def done_attach(self, event):
        self.volumes[event["name"]]["attached"] = True

    def begin_detach(self, event):
        self.volumes[event["name"]]["attached"] = None

    def done_detach(self, event):
        self.volumes[event["name"]]["attached"] = False

    def begin_ephemeral(self, event):
        self.volumes[event["name"]] = new_volume(event, id=event["name"])
        self.volumes[event["name"]]["state"] = "ephemeral"

    def done_unephemeral(self, event):
        del self.volumes[event["name"]]

    # ---- files ----

    def begin_write(self, event):
        files = self.volumes[event["name"]]["files"]
        files[event["file"]] = [event["seed"], event["size"], LOOSE]

    def done_write(self, event):
        if event["sync"]:
            self.volumes[event["name"]]["files"][event["file"]][2] = SYNCED

    # ---- snapshots ----

    def begin_snapshot(self, event):
        if event["name"] not in self.snapshots:
            self.snapshots[event["name"]] = self.snapshot_of(event["volume"], event["round"])

    def snapshot_of(self, name, number):
        volume = self.volumes[name]
        return dict(
            state="maybe",
            volume=name,
            volume_id=volume["id"],
            kind=volume["kind"],
            size=volume["size"],
            round=number,
            group=None,
            checks=0,
            is_exact=False,
            files=copied(volume["files"]),
        )

    def done_snapshot(self, event):
        self.found_snapshot(event["name"], event["id"])
        promise_all(self.snapshots[event["name"]]["files"])

        self.snapshots[event["name"]]["is_exact"] = True

    def fail_snapshot(self, event):
        """It was answered, and an image is of that instant; but it may be gone after a cut."""
        snapshot = self.snapshots[event["name"]]
        snapshot["is_exact"] = event["code"] == "NOT_READY" and snapshot["kind"] != "tree"

    def found_snapshot(self, name, snapshot_id):
        self.snapshots[name].update(state="there", id=snapshot_id)

    def begin_snapshot_delete(self, event):
        self.snapshots[event["name"]]["state"] = "deleting"

    def done_snapshot_delete(self, event):
        self.deleted.append(self.snapshots.pop(event["name"])["id"])

    # ---- groups ----

    def begin_group(self, event):
        self.groups[event["name"]] = dict(state="maybe", volumes=event["volumes"])
        for volume in event["volumes"]:
            snapshot = self.snapshot_of(volume, event["round"])
            snapshot["group"] = event["name"]
            self.snapshots[f"{event['name']}/{volume}"] = snapshot

    def done_group(self, event):
        self.found_group(event)
        for member in self.members(event["name"]):
            promise_all(member["files"])
            member["is_exact"] = True

    def found_group(self, event):
        self.groups[event["name"]].update(state="there", id=event["id"])
        for volume, snapshot_id in event["snapshots"].items():
            self.found_snapshot(f"{event['name']}/{volume}", snapshot_id)

    def begin_group_delete(self, event):
        for thing in [self.groups[event["name"]]] + self.members(event["name"]):
            thing["state"] = "deleting"

    def done_group_delete(self, event):
        self.deleted += [member["id"] for member in self.members(event["name"])]
        self.forget_group(event["name"])

    def forget_group(self, group):
        self.snapshots = {
            name: snapshot
            for name, snapshot in list(self.snapshots.items())
            if snapshot["group"] != group
        }
        self.groups.pop(group, None)

    def members(self, group):
        return [snapshot for snapshot in list(self.snapshots.values()) if snapshot["group"] == group]

    # ---- exports ----

    def done_init(self, event):
        self.has_repository = True

    def begin_export(self, event):
        snapshot = self.snapshots[event["name"]]
        self.exports[event["name"]] = dict(
            state="maybe",
            kind=snapshot["kind"],
            size=snapshot["size"],
            round=event["round"],
            checks=0,
            is_exact=snapshot["is_exact"],
            files=copied(snapshot["files"]),
        )

    def done_export(self, event):
        self.exports[event["name"]].update(state="there", id=event["id"])

    def begin_unexport(self, event):
        self.exports[event["name"]]["state"] = "deleting"

    def done_unexport(self, event):
        del self.exports[event["name"]]

    # ---- what the checks found of what was only begun ----

    def resolve_snapshot(self, event):
        if event["there"]:
            self.found_snapshot(event["name"], event["id"])
        else:
            del self.snapshots[event["name"]]

    def resolve_group(self, event):
        if event["there"]:
            self.found_group(event)
        else:
            self.forget_group(event["name"])

    def resolve_size(self, event):
        volume = self.volumes[event["name"]]
        volume.update(size=event["size"], sizes_maybe=[])

    def resolve_parameters(self, event):
        volume = self.volumes[event["name"]]
        volume["parameters"] = event["parameters"]
        volume.pop("parameters_maybe", None)

    def resolve_files(self, event):
        keep_found(self.volumes[event["name"]]["files"], event)

    def resolve_checked(self, event):
        snapshot = self.snapshots[event["name"]]
        snapshot["checks"] += 1
        keep_found(snapshot["files"], event)

    def resolve_export(self, event):
        if event["id"]:
            self.exports[event["name"]].update(state="there", id=event["id"])
        else:
            del self.exports[event["name"]]

    def resolve_export_checked(self, event):
        self.exports[event["name"]]["checks"] += 1

    def resolve_forget(self, event):
        """A problem was told once: it is not told again in each later round."""
        getattr(self, event["what"]).pop(event["name"], None)
