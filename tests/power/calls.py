# SPDX-License-Identifier: Apache-2.0
"""CSI calls and writes of a guest. The begin and the end of each is on the record."""

import hashlib
import json
import os
import random
import subprocess
import time

import grpc

import csi_pb2 as csi

MIB = 1 << 20
BLOCK_WRITE_BYTES = 65536
ABORTED_TRIES = 100
REPOSITORY = "main"


def content(seed, size):
    return hashlib.shake_128(seed.encode()).digest(size)


def capability(kind):
    result = csi.VolumeCapability()
    result.access_mode.mode = csi.VolumeCapability.AccessMode.SINGLE_NODE_WRITER
    if kind == "block":
        result.block.SetInParent()
    else:
        result.mount.fs_type = "" if kind == "tree" else kind
        result.mount.SetInParent()
    return result


class Client:
    """client("Node", "NodeStageVolume", field=value, ...): the answer, or grpc.RpcError."""

    def __init__(self, socket):
        self.channel = grpc.insecure_channel("unix:" + socket)

    def __call__(self, service, method, timeout=30, **fields):
        request = getattr(csi, method + "Request")(**fields)
        answer = getattr(csi, method + "Response")
        call = self.channel.unary_unary(
            f"/csi.v1.{service}/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        for _ in range(ABORTED_TRIES):
            try:
                return call(request, timeout=timeout)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.ABORTED:
                    raise
            time.sleep(0.1)  # as sidecars do: something else is done to the volume
        return call(request, timeout=timeout)

    def close(self):
        self.channel.close()


def in_range(size):
    return csi.CapacityRange(required_bytes=size)


def source_of(kind, source_id):
    source = csi.VolumeContentSource()
    if kind == "volume":
        source.volume.volume_id = source_id
    else:
        source.snapshot.snapshot_id = source_id
    return source


class NotReady(Exception):
    pass


class CommandFailed(Exception):
    pass


class Calls:
    """Each call returns what it gave, or None if it failed."""

    def __init__(self, guest):
        self.guest = guest
        self.client = None  # the server's start sets it
        self.staging = guest.base + "/pods/staging/"
        self.targets = guest.base + "/pods/targets/"
        os.makedirs(self.staging)
        os.makedirs(self.targets)

    @property
    def model(self):
        return self.guest.model

    def volume_id(self, name):
        return self.model.volumes[name]["id"]

    def capability(self, name):
        return capability(self.model.volumes[name]["kind"])

    def told(self, op, function, **facts):
        """Does it, with its begin and its end on the record."""
        note = self.guest.note
        note("begin", op=op, **facts)
        try:
            result = function() or {}
        except grpc.RpcError as error:
            note("fail", op=op, code=error.code().name, message=error.details(), **facts)
            return None
        except NotReady as error:
            note("fail", op=op, code="NOT_READY", message=str(error), **facts)
            return None
        except CommandFailed as error:
            note("fail", op=op, code="COMMAND", message=str(error), **facts)
            return None
        except OSError as error:
            note("fail", op=op, code="OS", message=str(error), **facts)
            return None
        note("done", **dict(facts, op=op, **result))
        return result or True

    # ---- the controller's side ----

    def create(self, name, kind, size, source=None, parameters=None):
        """`source`: ("volume" or "snapshot", its name)."""
        source_id = self.model.source(source)["id"] if source else None

        def run():
            if source and source[0] == "export":
                return self.import_volume(source_id, name)
            volume = self.client(
                "Controller",
                "CreateVolume",
                name=name,
                capacity_range=in_range(size),
                volume_capabilities=[capability(kind)],
                parameters=parameters or {},
                volume_content_source=source_of(source[0], source_id) if source else None,
            ).volume
            return {"id": volume.volume_id, "size": volume.capacity_bytes}

        return self.told(
            "create",
            run,
            name=name,
            kind=kind,
            size=size,
            source=source,
            source_id=source_id,
            parameters=parameters or {},
        )

    def delete(self, name):
        volume_id = self.volume_id(name)

        def run():
            self.client("Controller", "DeleteVolume", volume_id=volume_id)

        return self.told("delete", run, name=name)

    def expand(self, name, size, is_published):
        common = dict(
            volume_id=self.volume_id(name),
            capacity_range=in_range(size),
            volume_capability=self.capability(name),
        )

        def run():
            got = self.client("Controller", "ControllerExpandVolume", **common).capacity_bytes
            if is_published:
                self.client(
                    "Node",
                    "NodeExpandVolume",
                    volume_path=self.targets + name,
                    staging_target_path=self.staging + name,
                    **common,
                )
            return {"size": got}

        return self.told("expand", run, name=name, size=size)

    def modify(self, name, parameters):
        def run():
            self.client(
                "Controller",
                "ControllerModifyVolume",
                volume_id=self.volume_id(name),
                mutable_parameters=parameters,
            )

        return self.told("modify", run, name=name, parameters=parameters)

    def attach(self, name):
        def run():
            self.client(
                "Controller",
                "ControllerPublishVolume",
                volume_id=self.volume_id(name),
                node_id="node",
                volume_capability=self.capability(name),
            )

        return self.told("attach", run, name=name)

    def detach(self, name):
        def run():
            self.client(
                "Controller",
                "ControllerUnpublishVolume",
                volume_id=self.volume_id(name),
                node_id="node",
            )

        return self.told("detach", run, name=name)

    def snapshot(self, name, volume, waits=True):
        """Without `waits` it may be answered before it is ready, and counts as not answered."""
        source = self.volume_id(volume)
        timeout = 30 if waits else 0.1

        def take():
            answer = self.client(
                "Controller", "CreateSnapshot", timeout, name=name, source_volume_id=source
            )
            return answer.snapshot

        def run():
            snapshot = take()
            while waits and not snapshot.ready_to_use:
                time.sleep(0.02)
                snapshot = take()
            if not snapshot.ready_to_use:
                raise NotReady("the snapshot is not ready")
            return {"id": snapshot.snapshot_id}

        return self.told("snapshot", run, name=name, volume=volume)

    def delete_snapshot(self, name):
        def run():
            self.client(
                "Controller", "DeleteSnapshot", snapshot_id=self.model.snapshots[name]["id"]
            )

        return self.told("snapshot_delete", run, name=name)

    def group(self, name, volumes):
        names = {self.volume_id(volume): volume for volume in volumes}

        def run():
            while True:
                group = self.client(
                    "GroupController",
                    "CreateVolumeGroupSnapshot",
                    name=name,
                    source_volume_ids=list(names),
                ).group_snapshot
                if group.ready_to_use:
                    break
                time.sleep(0.02)
            return {
                "id": group.group_snapshot_id,
                "snapshots": {
                    names[one.source_volume_id]: one.snapshot_id for one in group.snapshots
                },
            }

        return self.told("group", run, name=name, volumes=volumes)

    def delete_group(self, name):
        def run():
            self.client(
                "GroupController",
                "DeleteVolumeGroupSnapshot",
                group_snapshot_id=self.model.groups[name]["id"],
                snapshot_ids=[member["id"] for member in self.model.members(name)],
            )

        return self.told("group_delete", run, name=name)

    # ---- exports ----

    def command(self, *words):
        """Of skycap itself; what it prints."""
        flags = ["--endpoint", "unix:" + self.guest.server.socket, "-o", "json"]
        command = [self.guest.task["skycap"], *words, *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CommandFailed(done.stderr.strip()[-400:])
        return json.loads(done.stdout or "{}")

    def try_command(self, harmless, *words):
        try:
            self.command(*words)
        except CommandFailed as error:
            if harmless not in str(error):
                raise

    def init(self):
        """A try that was not answered may have made it."""
        words = ["repository", "init", REPOSITORY]
        return self.told("init", lambda: self.try_command("is a repository already", *words))

    def export(self, name):
        snapshot_id = self.model.snapshots[name]["id"]

        def run():
            answer = self.command("snapshot", "export", snapshot_id, "--repository", REPOSITORY)
            return {"id": answer["id"]}

        return self.told("export", run, name=name)

    def import_volume(self, export_id, name):
        words = ["snapshot", "import", export_id, "--repository", REPOSITORY, "--name", name]
        volume = self.command(*words)["volume"]
        return {"id": volume["volumeId"], "size": int(volume.get("capacityBytes", 0))}

    def remove_export(self, name):
        def run():
            self.command("repository", "remove", REPOSITORY, self.model.exports[name]["id"])

        return self.told("unexport", run, name=name)

    def prune(self):
        """Another worker's may be under way, but none of an earlier boot."""
        return self.told("prune", lambda: self.try_command("is under way", "snapshot", "prune"))

    # ---- the node's side ----

    def publish(self, name):
        staging = self.staging + name
        common = dict(
            volume_id=self.volume_id(name),
            staging_target_path=staging,
            volume_capability=self.capability(name),
        )

        def run():
            os.makedirs(staging, exist_ok=True)
            self.client("Node", "NodeStageVolume", **common)
            self.client("Node", "NodePublishVolume", target_path=self.targets + name, **common)

        return self.told("publish", run, name=name)

    def unpublish(self, name):
        volume_id = self.volume_id(name)

        def run():
            self.client(
                "Node", "NodeUnpublishVolume", volume_id=volume_id, target_path=self.targets + name
            )
            self.client(
                "Node",
                "NodeUnstageVolume",
                volume_id=volume_id,
                staging_target_path=self.staging + name,
            )

        return self.told("unpublish", run, name=name)

    def ephemeral(self, name, kind):
        def run():
            self.client(
                "Node",
                "NodePublishVolume",
                volume_id=name,
                target_path=self.targets + name,
                volume_capability=capability(kind),
                volume_context={"csi.storage.k8s.io/ephemeral": "true", "size": "64Mi"},
            )
            write_file(self.targets + name + "/file", b"a pod's scratch", True)

        return self.told("ephemeral", run, name=name, kind=kind)

    def unephemeral(self, name):
        def run():
            self.client(
                "Node", "NodeUnpublishVolume", volume_id=name, target_path=self.targets + name
            )

        return self.told("unephemeral", run, name=name)

    def write(self, name, sync):
        """A new file; of a block device the next 64 KiB."""
        volume = self.model.volumes[name]
        number = len(volume["files"])
        is_block = volume["kind"] == "block"
        file = f"@{number}" if is_block else f"f{self.guest.task['round']}-{number}"
        size = BLOCK_WRITE_BYTES if is_block else random.choice(self.guest.task["file_sizes"])
        seed = f"{name}/{file}/{random.getrandbits(32)}"

        def run():
            if is_block:
                write_block(self.targets + name, number, content(seed, size), sync)
            else:
                write_file(f"{self.targets}{name}/{file}", content(seed, size), sync)

        return self.told("write", run, name=name, file=file, seed=seed, size=size, sync=sync)


def write_block(path, number, data, sync):
    with open(path, "r+b", buffering=0) as device:
        os.pwrite(device.fileno(), data, number * BLOCK_WRITE_BYTES)
        if sync:
            os.fsync(device.fileno())


def write_file(path, data, sync):
    """A new file. Its name is synced too."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    if sync:
        directory = os.open(os.path.dirname(path), os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
