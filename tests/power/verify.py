# SPDX-License-Identifier: Apache-2.0
"""What is there after a power cut, compared with the model of what was answered."""

import glob
import json
import os
import random
import shutil
import sqlite3
import subprocess
import time

import grpc

import csi_pb2 as csi
import records_pb2 as records
from calls import BLOCK_WRITE_BYTES, REPOSITORY, CommandFailed, content
from model import SYNCED

SWEEP_SECONDS = 20
RELEASE_SECONDS = 5
SNAPSHOTS_PER_ROUND = 8
EXPORTS_PER_ROUND = 6
OPERATION_SECONDS = 60
GOES_ON = ("export-snapshot", "import-snapshot")
HOLDERS = {
    "volumes": ("volume-trees", "volume-images"),
    "snapshots": ("snapshot-trees", "snapshot-images"),
}


def handle_of(some_id):
    return some_id.rsplit("/", 1)[-1]


# ---- the store ----


def check_store_file(guest):
    """On a copy, before skycap has touched it."""
    store = guest.data + "/state.db"
    if not os.path.exists(store):
        return
    copy = guest.base + "/run/store"
    os.mkdir(copy)
    for suffix in ("", "-wal"):
        if os.path.exists(store + suffix):
            shutil.copyfile(store + suffix, f"{copy}/state.db{suffix}")
    connection = sqlite3.connect(copy + "/state.db")
    found = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    shutil.rmtree(copy)
    if found != [("ok",)]:
        guest.problem("the store is damaged", found=found[:5])


def read_rows(guest, beginning, record):
    connection = sqlite3.connect(f"file:{guest.data}/state.db?mode=ro", uri=True)
    rows = connection.execute(f"SELECT value FROM entry WHERE key GLOB '{beginning}/*'").fetchall()
    connection.close()
    return {row.handle: row for row in (record.FromString(value) for value, in rows)}


def read_volume_rows(guest):
    return read_rows(guest, "volume", records.VolumeRecord)


def hidden_snapshots(guest):
    """What exports keep, so that the next one of the volume reads only what has changed."""
    if not guest.task["exports"]:
        return set()
    rows = read_rows(guest, "snapshot", records.SnapshotRecord)
    return {handle for handle, row in rows.items() if row.purpose}


# ---- lists ----


def list_pages(guest, method):
    token = ""
    while True:
        answer = guest.calls.client("Controller", method, starting_token=token)
        yield from answer.entries
        token = answer.next_token
        if not token:
            return


def list_volumes(guest):
    return {entry.volume.volume_id: entry for entry in list_pages(guest, "ListVolumes")}


def list_snapshots(guest):
    return {
        entry.snapshot.snapshot_id: entry.snapshot for entry in list_pages(guest, "ListSnapshots")
    }


def list_ready_snapshots(guest):
    """A copy that the cut has interrupted is taken up again, or given up."""
    deadline = time.monotonic() + SWEEP_SECONDS * guest.task["slowness"]
    listed = list_snapshots(guest)
    while not all(snapshot.ready_to_use for snapshot in listed.values()):
        if time.monotonic() > deadline:
            guest.problem("a snapshot does not become ready")
            break
        time.sleep(0.02)
        listed = list_snapshots(guest)
    return listed


# ---- what was begun only, and what was answered ----


def forget(guest, what, name):
    guest.note("resolve", op="forget", what=what, name=name)


def repeat_create(guest, name, volume, ids):
    """It was not answered: whoever asked for it asks again."""
    is_import = volume["source"] and volume["source"][0] == "export"
    if volume["source_id"] and volume["source_id"] not in ids and not is_import:
        forget(guest, "volumes", name)  # if it was made it is found below as one that nobody made
    elif not guest.calls.create(
        name, volume["kind"], volume["asked"], volume["source"], volume["parameters"]
    ):
        guest.problem("a create cannot be repeated", name=name)
        forget(guest, "volumes", name)


def repeat_delete(guest, name, volume):
    if volume["attached"] is not False:
        guest.calls.detach(name)
    if not guest.calls.delete(name):
        guest.problem("a delete cannot be repeated", name=name)


def check_listed_volume(guest, name, volume, entry):
    size = entry.volume.capacity_bytes
    condition = entry.status.volume_condition
    if condition.abnormal:
        guest.problem("a volume is ill", name=name, message=condition.message)
    if size not in [volume["size"], *volume["sizes_maybe"]]:
        guest.problem("a volume has another size", name=name, answered=volume["size"], listed=size)
    if size != volume["size"]:
        guest.note("resolve", op="size", name=name, size=size)
    if volume["attached"] is not None and volume["attached"] != bool(
        entry.status.published_node_ids
    ):
        guest.problem("an attachment is wrong", name=name, answered=volume["attached"])


def settle_volumes(guest):
    listed = list_volumes(guest)
    ids = set(listed) | set(list_snapshots(guest))
    for name, volume in list(guest.model.volumes.items()):
        if volume["state"] == "ephemeral":
            if not guest.calls.unephemeral(name):
                guest.problem("an ephemeral volume cannot be unpublished", name=name)
        elif volume["state"] == "deleting":
            repeat_delete(guest, name, volume)
        elif volume["state"] == "maybe":
            repeat_create(guest, name, volume, ids)
        elif volume["id"] in listed:
            check_listed_volume(guest, name, volume, listed[volume["id"]])
        else:
            guest.problem("an answered volume is not listed", name=name)
            forget(guest, "volumes", name)


def settle_groups(guest, listed):
    known = {snapshot.get("id") for snapshot in guest.model.snapshots.values()}
    for name, group in list(guest.model.groups.items()):
        if group["state"] == "deleting":
            if not guest.calls.delete_group(name):
                guest.problem("a delete of a group cannot be repeated", name=name)
        elif group["state"] == "maybe":
            names = {member["volume_id"]: member["volume"] for member in guest.model.members(name)}
            found = {
                names[one.source_volume_id]: one
                for one in listed.values()
                if one.source_volume_id in names
                and one.group_snapshot_id
                and one.snapshot_id not in known
            }
            ids = {one.group_snapshot_id for one in found.values()}
            is_there = len(found) == len(names) and len(ids) == 1
            if found and not is_there:
                guest.problem("a group is there in part", name=name, found=list(found))
            guest.note(
                "resolve",
                op="group",
                name=name,
                there=is_there,
                id=next(iter(ids), None),
                snapshots={volume: one.snapshot_id for volume, one in found.items()},
            )


def settle_snapshots(guest, listed):
    known = {snapshot.get("id") for snapshot in guest.model.snapshots.values()} | set(
        guest.model.deleted
    )
    for name, snapshot in list(guest.model.snapshots.items()):
        if snapshot["group"]:
            if snapshot["state"] == "there" and snapshot["id"] not in listed:
                guest.problem("an answered snapshot of a group is not listed", name=name)
                forget(guest, "snapshots", name)
        elif snapshot["state"] == "maybe":
            found = [
                one.snapshot_id
                for one in listed.values()
                if not one.group_snapshot_id
                and one.source_volume_id == snapshot["volume_id"]
                and one.snapshot_id not in known
            ]
            guest.note(
                "resolve",
                op="snapshot",
                name=name,
                there=bool(found),
                id=found[0] if found else None,
            )
            known.update(found[:1])
        elif snapshot["state"] == "deleting":
            if not guest.calls.delete_snapshot(name):
                guest.problem("a delete of a snapshot cannot be repeated", name=name)
        elif snapshot["id"] not in listed:
            guest.problem("an answered snapshot is not listed", name=name)
            forget(guest, "snapshots", name)


def check_nothing_else(guest):
    for what, listed, expected in (
        ("volume", list_volumes(guest), guest.model.volumes),
        ("snapshot", list_snapshots(guest), guest.model.snapshots),
    ):
        for some_id in set(listed) - {thing.get("id") for thing in expected.values()}:
            whose = "was deleted" if some_id in guest.model.deleted else "nobody made"
            guest.problem(f"there is a {what} that {whose}", id=some_id)


# ---- what is in them ----


def read_back(path, kind, name, size):
    """The bytes of a file, or of that part of a block device; None: there is no such file."""
    try:
        if kind != "block":
            with open(f"{path}/{name}", "rb") as file:
                return file.read()
        with open(path, "rb", buffering=0) as device:
            return os.pread(device.fileno(), size, int(name[1:]) * BLOCK_WRITE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error).encode()


def compare(guest, path, name, thing):
    """`thing` is a volume or a snapshot. Returns the names that are gone, and those whose bytes are
    all there."""
    kind, files = thing["kind"], thing["files"]
    found = {name: read_back(path, kind, name, size) for name, (_, size, _) in files.items()}
    whole = [name for name, (seed, size, _) in files.items() if found[name] == content(seed, size)]
    gone = [name for name in files if found[name] is None]
    lost = [name for name, file in files.items() if file[2] == SYNCED and name not in whole]
    extra = []
    if kind != "block" and thing["is_exact"]:
        extra = sorted(set(os.listdir(path)) - set(files) - {"lost+found"})
    if lost or extra:
        guest.problem(
            "content is wrong",
            name=name,
            kind=kind,
            lost=lost[:8],
            extra=extra[:8],
            gone=len(gone),
            of=len(files),
        )
    return gone, whole


def real_size(guest, name, volume):
    """What the user really has: the size of the device; of a tree the limit, or None."""
    path = guest.calls.targets + name
    if volume["kind"] == "block":
        with open(path, "rb", buffering=0) as device:
            return device.seek(0, os.SEEK_END)
    if volume["kind"] != "tree":
        number = os.stat(path).st_dev
        with open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/size") as file:
            return int(file.read()) * 512
    if not guest.task["limits_trees"]:
        return None
    answer = guest.calls.client(
        "Node",
        "NodeGetVolumeStats",
        volume_id=volume["id"],
        volume_path=path,
        staging_target_path=guest.calls.staging + name,
    )
    return next(usage.total for usage in answer.usage if usage.unit == csi.VolumeUsage.BYTES)


def check_size(guest, name, volume):
    size = real_size(guest, name, volume)
    if size is not None and size < volume["size"]:
        guest.problem(
            "a volume is smaller than was answered",
            name=name,
            kind=volume["kind"],
            answered=volume["size"],
            really=size,
            source=volume["source"],
        )


def check_volume(guest, name, volume):
    if not guest.calls.publish(name):
        guest.problem(
            "a volume cannot be published", name=name, kind=volume["kind"], log=guest.server.tail()
        )
        repeat_delete(guest, name, volume)
        return
    before = guest.problems
    gone, whole = compare(guest, guest.calls.targets + name, name, volume)
    guest.note("resolve", op="files", name=name, gone=gone, whole=whole)
    check_size(guest, name, volume)
    guest.calls.unpublish(name)
    if guest.problems > before:  # told once
        repeat_delete(guest, name, volume)


def check_snapshot(guest, name, snapshot, size):
    """By a volume that is made of it."""
    temporary = f"check-{guest.task['round']}-{name.replace('/', '-')}"
    if not guest.calls.create(temporary, snapshot["kind"], size, ("snapshot", name)):
        guest.problem("a snapshot cannot be restored", name=name, log=guest.server.tail())
        return
    if guest.calls.publish(temporary):
        gone, whole = compare(guest, guest.calls.targets + temporary, name, snapshot)
        guest.note("resolve", op="checked", name=name, gone=gone, whole=whole)
        guest.calls.unpublish(temporary)
    else:
        guest.problem("a restored snapshot cannot be published", name=name, log=guest.server.tail())
    guest.calls.delete(temporary)


def check_contents(guest):
    model = guest.model
    for name in model.there(model.volumes):
        check_volume(guest, name, model.volumes[name])
    listed = list_snapshots(guest)
    # New ones first, and two of those that were checked before.
    names = sorted(model.there(model.snapshots), key=lambda name: model.snapshots[name]["checks"])
    new = [name for name in names if not model.snapshots[name]["checks"]][:SNAPSHOTS_PER_ROUND]
    old = [name for name in names if model.snapshots[name]["checks"]]
    for name in new + random.sample(old, min(2, len(old))):
        snapshot = model.snapshots[name]
        # An expansion that was not answered may have made the volume larger.
        size = max(snapshot["size"], listed[snapshot["id"]].size_bytes)
        check_snapshot(guest, name, snapshot, size)


# ---- exports ----


def wait_for_operations(guest):
    """Exports and imports that the cut has interrupted go on."""
    deadline = time.monotonic() + OPERATION_SECONDS * guest.task["slowness"]
    while True:
        listed = guest.calls.command("op", "list").get("operations", [])
        running = [one for one in listed if one.get("state", "RUNNING") == "RUNNING"]
        if not running:
            break
        if time.monotonic() > deadline:
            guest.problem("operations do not end", running=running[:3], log=guest.server.tail())
            break
        time.sleep(0.02)
    failed = [one for one in listed if one["state"] == "FAILED" and one["kind"] in GOES_ON]
    if failed:
        guest.problem("an operation has failed", failed=failed[:3])


def list_exports(guest):
    """Ids by the names of the snapshots."""
    listed = guest.calls.command("repository", "snapshots", REPOSITORY).get("exports", [])
    if len({one["name"] for one in listed}) < len(listed):
        guest.problem("a snapshot is exported twice", listed=[one["name"] for one in listed])
    return {one["name"]: one["id"] for one in listed}


def settle_exports(guest):
    listed = list_exports(guest)
    for name in set(listed) - set(guest.model.exports):
        guest.problem("there is an export that nobody made", name=name)
    for name, export in list(guest.model.exports.items()):
        if export["state"] == "deleting" and name in listed:
            if not guest.calls.remove_export(name):
                guest.problem("an export cannot be removed", name=name)
        elif export["state"] == "there":
            if listed.get(name) != export["id"]:
                guest.problem("a complete export is not listed", name=name)
                forget(guest, "exports", name)
        else:
            guest.note("resolve", op="export", name=name, id=listed.get(name))


def check_exports(guest):
    """What is in the repository is there whole."""
    wait_for_operations(guest)
    settle_exports(guest)
    words = ["--data"] if random.random() < 0.5 else []
    try:
        guest.calls.command("snapshot", "verify", *words)
    except CommandFailed as error:
        guest.problem("the repository is damaged", said=str(error))
    names = sorted(
        guest.model.there(guest.model.exports),
        key=lambda name: (guest.model.exports[name]["checks"], random.random()),
    )
    for name in names[:EXPORTS_PER_ROUND]:
        check_export(guest, name, guest.model.exports[name])


def check_export(guest, name, export):
    """By a volume that is made of it."""
    temporary = f"imported-{guest.task['round']}-{name}"
    if not guest.calls.create(temporary, export["kind"], export["size"], ("export", name)):
        guest.problem("an export cannot be imported", name=name, log=guest.server.tail())
        return
    if guest.calls.publish(temporary):
        compare(guest, guest.calls.targets + temporary, name, export)
        guest.note("resolve", op="export_checked", name=name)
        guest.calls.unpublish(temporary)
    else:
        guest.problem("an imported volume cannot be published", name=name, log=guest.server.tail())
    guest.calls.delete(temporary)


# ---- parameters ----


def data_root(guest):
    return guest.data + "/pool" if os.path.isdir(guest.data + "/pool") else guest.data


def compression_of(guest, volume):
    """As the file system has it."""
    is_tree = volume["kind"] == "tree"
    path = "volume-trees/%s/tree" if is_tree else "volume-images/%s/disk/image"
    try:
        return os.getxattr(
            f"{data_root(guest)}/{path % handle_of(volume['id'])}", "btrfs.compression"
        ).decode()
    except OSError:
        return "none"


def check_parameters(guest):
    rows = read_volume_rows(guest)
    for name, volume in list(guest.model.volumes.items()):
        if volume["state"] != "there" or handle_of(volume["id"]) not in rows:
            continue
        row = rows[handle_of(volume["id"])]
        found = {**row.parameters, **row.mutable_parameters}
        if found not in (volume["parameters"], volume.get("parameters_maybe")):
            guest.problem(
                "parameters are wrong", name=name, answered=volume["parameters"], found=found
            )
        really = compression_of(guest, volume)
        if guest.task["compresses"] and found.get("compression", really) != really:
            guest.problem("data is not compressed as answered", answered=found, really=really)
            repeat_delete(guest, name, volume)  # told once
            continue
        guest.note("resolve", op="parameters", name=name, parameters=found)


# ---- leaks ----


def unexpected_data(guest):
    """Data and subvolumes of nobody, and who has none. The model is exact now."""
    root = data_root(guest)
    hidden = hidden_snapshots(guest)
    wrong = ["making/" + name for name in os.listdir(root + "/making")]
    for what, places in HOLDERS.items():
        expected = {handle_of(thing["id"]) for thing in getattr(guest.model, what).values()}
        expected |= hidden if what == "snapshots" else set()
        found = [f"{place}/{name}" for place in places for name in os.listdir(f"{root}/{place}")]
        wrong += [path for path in found if handle_of(path) not in expected]
        wrong += [f"no data: {name}" for name in expected - set(map(handle_of, found))]
    if guest.task["compresses"]:
        listed = subprocess.run(
            ["btrfs", "subvolume", "list", root], capture_output=True, text=True, check=True
        )
        known = {
            handle_of(thing["id"])
            for thing in [*guest.model.volumes.values(), *guest.model.snapshots.values()]
        } | hidden
        wrong += [
            line
            for line in listed.stdout.splitlines()
            if not known & set(line.split(" path ")[1].split("/"))
        ]
    return wrong


def check_data(guest):
    """The server sweeps in the background after its start."""
    deadline = time.monotonic() + SWEEP_SECONDS * guest.task["slowness"]
    while True:
        wrong = unexpected_data(guest)
        if not wrong:
            return
        if time.monotonic() > deadline:
            guest.problem("data leaked", wrong=wrong[:8])
            return
        time.sleep(0.05)


def check_stopped(guest):
    """The server is stopped, nothing is published: doctor finds nothing, nothing is mounted."""
    wait_until(lambda: not loop_files(guest))  # whoever looks at a device keeps it for that long
    done = subprocess.run(
        [guest.task["skycap"], "doctor", "--data", guest.data, "-o", "json"],
        capture_output=True,
        text=True,
    )
    findings = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 or findings:
        guest.problem(
            "doctor finds something",
            exit_code=done.returncode,
            findings=findings[:8],
            stderr=done.stderr[-500:],
            warnings=guest.server.warnings(),
        )
    if mounts(guest) or loop_files(guest):
        guest.problem(
            "mounts or loop devices leaked", mounts=mounts(guest)[:8], loops=loop_files(guest)[:8]
        )


def unmount_disk(guest):
    """The server is stopped: nothing of it holds the disk."""

    def unmount():
        return subprocess.run(["umount", guest.disk], capture_output=True).returncode == 0

    if not wait_until(unmount):
        guest.problem(
            "the disk is busy",
            mounts=mounts(guest)[:8],
            loops=loop_files(guest)[:8],
            log=guest.server.tail(),
        )


def wait_until(condition):
    """Whoever looks at a loop device of ours (blkid, losetup, another test) keeps it for that long,
    and with it the file below. False: not within RELEASE_SECONDS."""
    deadline = time.monotonic() + RELEASE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def mounts(guest):
    with open("/proc/self/mounts") as file:
        points = [line.split()[1] for line in file]
    return [point for point in points if point.startswith((guest.base + "/pods/", guest.disk + "/"))]


def check_rebuild(guest):
    """The server is stopped. The store is lost, and made again from the notes beside the data."""
    command = [guest.task["skycap"], "doctor", "--data", guest.data, "--rebuild"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        guest.problem("doctor cannot rebuild the store", said=(done.stdout + done.stderr)[-600:])
    elif guest.server.start():
        check_nothing_else(guest)
        listed = set(list_volumes(guest)) | set(list_snapshots(guest))
        things = [*guest.model.volumes.values(), *guest.model.snapshots.values()]
        lost = [thing["id"] for thing in things if thing["id"] not in listed]
        if lost:
            guest.problem("a rebuilt store lacks something", lost=lost[:8])
        guest.server.stop()


def loop_files(guest):
    files = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path) as file:
                files.append(file.read().strip())
        except OSError:
            pass  # it went meanwhile
    return [file for file in files if file.startswith(guest.disk + "/")]


def check_all(guest):
    """Everything that was answered is there, as it was answered. What was only begun is there or
    not, and can be asked for again."""
    try:
        if guest.task["exports"]:
            wait_for_operations(guest)  # a snapshot that is being exported cannot be deleted
        settle_volumes(guest)
        settle_groups(guest, list_ready_snapshots(guest))
        settle_snapshots(guest, list_ready_snapshots(guest))
        check_nothing_else(guest)
        check_parameters(guest)
        check_contents(guest)
        if guest.task["exports"]:
            check_exports(guest)
        check_data(guest)
    except (grpc.RpcError, OSError, CommandFailed) as error:
        guest.problem("a check failed", error=str(error)[:600], log=guest.server.tail())
