#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""4 GiB are copied on a back end that cannot share data. Progress, looked at every 50 ms, never falls, never exceeds
the total and ends equal to it. Cancel ends a copy within 200 ms, its space is free again, and Progress says so later;
cancelling what has ended changes nothing.
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

SIZE = 4 << 30
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKYCAP = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")) / "skycap"
SLOWER = int(os.environ.get("SLOWER", "1"))


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


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


def block_request(name, source=None):
    request = {"name": name, "capacityRange": {"requiredBytes": SIZE},
               "volumeCapabilities": [{"block": {}, "accessMode": {"mode": "SINGLE_NODE_WRITER"}}]}
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


def free_bytes(folder):
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def start_copy(server, source, name):
    """The request, in the background, and the operation."""
    request = subprocess.Popen(server.command("csi.v1.Controller/CreateVolume", block_request(name, source)),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200 * SLOWER):
        for operation in server.call("skycap.v1.Operations/List", {}).get("operations", []):
            if operation["state"] == "RUNNING" and int(operation.get("done", 0)) > 0:
                return request, operation["id"]
        time.sleep(0.02)
    fail("the copy is no operation")


def sample(server, operation):
    return server.call("skycap.v1.Operations/Get", {"id": operation})


def check_progress(server, source):
    request, operation = start_copy(server, source, "copied")
    samples, rates, last = 0, 0, 0
    while True:
        at = sample(server, operation)
        done, total = int(at.get("done", 0)), int(at["total"])
        if done < last or done > total:
            fail(f"progress: {done} of {total} after {last}")
        samples, last = samples + 1, done
        rates += "timeLeft" in at
        if at["state"] != "RUNNING":
            break
        time.sleep(0.05)
    # The total is the space on the disk, with the blocks of the file system that list the extents.
    if at["state"] != "SUCCEEDED" or last != total or not 0 <= total - SIZE < 1 << 20:
        fail(f"the end: {at}")
    if request.wait(60) != 0 or samples < 5:
        fail(f"the request fails, or {samples} samples")
    print(f"{samples} samples, {rates} of them with a rate")
    again = server.call("skycap.v1.Operations/Cancel", {"id": operation})
    if again["state"] != "SUCCEEDED" or "cancelAsked" in again:
        fail(f"cancel after the end: {again}")


def check_cancel(server, source, folder):
    before = free_bytes(folder)
    request, operation = start_copy(server, source, "cancelled")
    began = time.monotonic()
    server.call("skycap.v1.Operations/Cancel", {"id": operation})
    while sample(server, operation)["state"] == "RUNNING":
        time.sleep(0.005)
    took = time.monotonic() - began
    print(f"cancelled within {took * 1000:.0f} ms")
    if took > 0.2 * SLOWER:
        fail(f"cancelling took {took:.3f} s")
    at = sample(server, operation)
    if at["state"] != "CANCELLED" or int(at["done"]) >= SIZE:
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
        source = server.call("csi.v1.Controller/CreateVolume", block_request("source"))["volume"]["volumeId"]
        fill(folder)
        check_cancel(server, source, folder)
        check_progress(server, source)
    finally:
        server.end()
        subprocess.run(["chattr", "-R", "-i", folder], capture_output=True)
        subprocess.run(["rm", "-rf", folder], check=True)


main()
