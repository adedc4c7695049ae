#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""4 GiB are copied on a back end that cannot share data. Progress, looked at more than ten times a second, never falls,
never exceeds the total or what the copy has on the disk, and ends equal to the total. Cancel ends a copy within 200 ms, that of
a directory too, its space is free again, and Progress says so later; cancelling what has ended changes nothing.
"""
# time-limit: 300
# alone

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

try:
    import grpc
except ModuleNotFoundError:
    print("skipped: Python's grpc is missing (Debian package python3-grpcio)")
    sys.exit(77)

SIZE = 4 << 30
TREE_FILES = 1000
RUNNING, SUCCEEDED, CANCELLED = 1, 2, 4
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKYCAP = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")) / "skycap"
SLOWER = int(os.environ.get("TIME_FACTOR", "1"))


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


def read_varint(octets, at):
    value = shift = 0
    while True:
        value |= (octets[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if not octets[at - 1] & 0x80:
            return value, at


def read_message(octets):
    """The fields of a message by their numbers: numbers, or bytes."""
    fields, at = {}, 0
    while at < len(octets):
        key, at = read_varint(octets, at)
        value, at = read_varint(octets, at)
        if key & 7 == 2:
            value, at = octets[at:at + value], at + value
        elif key & 7:
            fail(f"an operation has a field of type {key & 7}")
        fields[key >> 3] = value
    return fields


class Operations:
    """skycap.v1.Operations over one connection: a process for each look would be slower than what it looks at."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.get_one = self.channel.unary_unary("/skycap.v1.Operations/Get")

    def get(self, operation):
        name = operation.encode()
        fields = read_message(self.get_one(bytes([10, len(name)]) + name, timeout=10))
        return {"state": fields.get(4), "done": fields.get(7, 0), "total": fields.get(8, 0), "has_rate": 16 in fields}


class Server:
    def __init__(self, folder):
        self.folder = folder
        self.address = f"unix:{folder}/csi.sock"
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(
            [SKYCAP, "serve", "--endpoint", self.address, "--data", folder / "data", "--backend", "dir"],
            stdout=self.log, stderr=self.log)
        for _ in range(100 * SLOWER):
            if subprocess.run([SKYCAP, "probe", "--endpoint", self.address], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        fail("the server does not start")

    def command(self, method, request):
        return [SKYCAP, "call", "--compact", "--timeout", "250", self.address, method, json.dumps(request)]

    def call(self, method, request):
        done = subprocess.run(self.command(method, request), capture_output=True, text=True)
        if done.returncode:
            fail(f"{method}: {done.stderr}")
        return json.loads(done.stdout)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def volume_request(name, kind, source=None):
    request = {"name": name, "capacityRange": {"requiredBytes": SIZE},
               "volumeCapabilities": [{kind: {}, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}]}
    if source:
        request["volumeContentSource"] = {"volume": {"volumeId": source}}
    return request


def fill(folder):
    """The image of the only volume, with data in every block."""
    (image,) = [path for path in (folder / "data").rglob("*") if path.is_file() and path.stat().st_size == SIZE]
    block = os.urandom(8 << 20)
    with open(image, "r+b") as out:
        for _ in range(SIZE // len(block)):
            out.write(block)
        os.fsync(out.fileno())


def fill_tree(folder, volume):
    (tree,) = (folder / "data").rglob(f"{volume.split('/')[-1]}/tree")
    block = os.urandom(1 << 20)
    for number in range(TREE_FILES):
        (tree / str(number)).write_bytes(block)
    os.sync()


def free_bytes(folder):
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def start_copy(server, kind, source, name):
    """The request, in the background, and the operation."""
    request = subprocess.Popen(server.command("csi.v1.Controller/CreateVolume", volume_request(name, kind, source)),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200 * SLOWER):
        for operation in server.call("skycap.v1.Operations/List", {}).get("operations", []):
            if operation["state"] == "RUNNING" and int(operation.get("done", 0)) > 0:
                return request, operation["id"]
        time.sleep(0.02)
    fail("the copy is no operation")


def space_of_copy(folder, operation):
    """What the image has on the disk while it is made; None when it is finished."""
    try:
        return os.stat(folder / "data/making" / f"volume-image-{operation.split('/')[-1]}" / "disk/image").st_blocks * 512
    except FileNotFoundError:
        return None


def check_progress(server, operations, source, folder):
    request, operation = start_copy(server, "block", source, "copied")
    block = os.statvfs(folder).f_bsize
    samples, rates, compared, last, began = 0, 0, 0, 0, time.monotonic()
    while True:
        at = operations.get(operation)
        space = space_of_copy(folder, operation)  # later, so it is not less
        done, total = at["done"], at["total"]
        if done < last or done > total:
            fail(f"progress: {done} of {total} after {last}")
        # In the end the blocks that list the extents are added, which the copy may have fewer of.
        if space is not None and done <= SIZE:
            compared += 1
            if done > space + block:
                fail(f"progress: {done}, and the copy has {space} on the disk")
        samples, last = samples + 1, done
        rates += at["has_rate"]
        if at["state"] != RUNNING:
            break
        time.sleep(0.05)
    took = time.monotonic() - began
    # The total is the space on the disk, with the blocks of the file system that list the extents.
    if at["state"] != SUCCEEDED or last != total or not 0 <= total - SIZE < 1 << 20:
        fail(f"the end: {at}")
    if request.wait(60) != 0:
        fail("the request fails")
    print(f"{samples} samples in {took:.1f} s, {rates} of them with a rate, {compared} compared with the disk")
    if samples < max(5, took * 10 / SLOWER) or compared < samples // 2:
        fail("too few samples")
    again = server.call("skycap.v1.Operations/Cancel", {"id": operation})
    if again["state"] != "SUCCEEDED" or "cancelAsked" in again:
        fail(f"cancel after the end: {again}")


def check_cancel(server, operations, kind, source, folder):
    before = free_bytes(folder)
    request, operation = start_copy(server, kind, source, "cancelled")
    began = time.monotonic()
    server.call("skycap.v1.Operations/Cancel", {"id": operation})
    while operations.get(operation)["state"] == RUNNING:
        time.sleep(0.005)
    took = time.monotonic() - began
    print(f"{kind}: cancelled within {took * 1000:.0f} ms")
    if took > 0.2 * SLOWER:
        fail(f"cancelling took {took:.3f} s")
    at = operations.get(operation)
    if at["state"] != CANCELLED or at["done"] >= (SIZE if kind == "block" else TREE_FILES << 20):
        fail(f"a cancelled copy: {at}")
    if request.wait(60) == 0:
        fail("the request of a cancelled copy succeeds")
    for _ in range(100 * SLOWER):
        if before - free_bytes(folder) < SIZE // 100:
            break
        time.sleep(0.1)
    else:
        fail(f"{before - free_bytes(folder)} bytes are not free again")
    server.call("csi.v1.Controller/DeleteVolume", {"volumeId": operation})


def can_share(folder):
    done = subprocess.run(["cp", "--reflink=always", folder / "log", folder / "log2"], capture_output=True)
    return done.returncode == 0


def main():
    given = os.environ.get("SKYCAP_TMP")
    folder = pathlib.Path(tempfile.mkdtemp(dir=given, prefix="progress-"))
    server = Server(folder)
    try:
        if can_share(folder) or free_bytes(folder) < 3 * SIZE:
            print("needs 12 GiB on a file system whose copies share nothing")
            sys.exit(77)
        operations = Operations(server.address)
        source = server.call("csi.v1.Controller/CreateVolume", volume_request("source", "block"))["volume"]["volumeId"]
        fill(folder)
        check_cancel(server, operations, "block", source, folder)
        check_progress(server, operations, source, folder)
        tree = server.call("csi.v1.Controller/CreateVolume", volume_request("tree", "mount"))["volume"]["volumeId"]
        fill_tree(folder, tree)
        check_cancel(server, operations, "mount", tree, folder)
    finally:
        server.end()
        subprocess.run(["chattr", "-R", "-i", folder], capture_output=True)
        subprocess.run(["rm", "-rf", folder], check=True)


main()
