# SPDX-License-Identifier: Apache-2.0
"""A volume of 2 GiB moves between two nodes: the whole volume, and back after a hundredth of it has changed, when both nodes
have an earlier copy. The volume is in use, by a writer of a few bytes, until most of it has been copied; then it is
released, and the rest follows. That time, in which nobody can use it, is what the move itself reports."""

import json
import os
import statistics
import subprocess
import threading
import time

from harness import NotMeasured, print_table
from transfers import LARGE_BYTES, Link, fill_large, settle

BLOCK = 1 << 20
CHANGED_PART = 100  # a hundredth
MOST_PART, MOST_UNAVAILABLE_MS = 0.05, 1000
ROUNDS = 3  # at most
WRITER_SECONDS = 0.1


class Writer:
    """Writes a few bytes now and then, durably, until it is told to stop."""

    def __init__(self, path):
        self.path, self.ends = path, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        while not self.ends.wait(WRITER_SECONDS):
            with open(self.path / "log", "a") as file:
                file.write(f"{number}\n")
                os.fsync(file.fileno())
            number += 1

    def stop(self):
        self.ends.set()
        self.thread.join()


def change(path):
    """A hundredth of the large file, in blocks at equal distances."""
    with open(path / "large", "r+b") as file:
        for offset in range(0, LARGE_BYTES, CHANGED_PART * BLOCK):
            file.seek(offset)
            file.write(os.urandom(BLOCK))
        os.fsync(file.fileno())


def is_copied(node, volume_id):
    """Most of the data has arrived: the operation has done all that it knew of."""
    for operation in json.loads(node.call("op", "list", "-o", "json")).get("operations", []):
        if operation["subject"] == volume_id and operation["state"] == "RUNNING" and int(operation.get("total", 0)):
            return int(operation.get("done", 0)) >= int(operation["total"])
    return False


def wait_until_copied(node, volume_id, mover):
    deadline = time.monotonic() + 600
    while not is_copied(node, volume_id):
        if mover.poll() is not None or time.monotonic() > deadline:
            raise NotMeasured("the move has ended before the volume was released, or did not copy it")
        time.sleep(0.02)


def move(link, source, target, volume_id):
    """Seconds of copying and of the rest, and how long the volume was unavailable."""
    path = link.directory / "volume"
    source.call("volume", "publish", "data", path)
    writer = Writer(path)
    try:
        started = time.monotonic()
        mover = subprocess.Popen([source.cluster.skycap, "volume", "move", "data", target.name, "-o", "json",
                                  "--endpoint", f"unix:{source.socket}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        wait_until_copied(source, volume_id, mover)
        copied = time.monotonic() - started
    finally:
        writer.stop()
    source.call("volume", "unpublish", "data", path)
    released = time.monotonic()
    out, _ = mover.communicate(timeout=600)
    if mover.returncode:
        raise NotMeasured("the volume did not move")
    return copied + time.monotonic() - released, int(json.loads(out).get("unavailableMs", 0))


def measure(build, directory, stack, arguments, report):
    link = Link(build, directory, stack)
    path = directory / "volume"
    whole, part, unavailable = [], [], []
    for _ in range(min(arguments.repeats, ROUNDS)):
        link.one.call("volume", "create", "data", "--size", "8Gi", "--node", "one", "--publish", path)
        fill_large(path)
        link.one.call("volume", "unpublish", "data", path)
        volume_id = json.loads(link.one.call("volume", "show", "data", "-o", "json"))["volume"]["volumeId"]
        seconds, away_ms = move(link, link.one, link.other, volume_id)
        whole.append(seconds)
        unavailable.append(away_ms)
        link.other.call("volume", "publish", "data", path)
        change(path)
        link.other.call("volume", "unpublish", "data", path)
        seconds, away_ms = move(link, link.other, link.one, volume_id)
        part.append(seconds)
        unavailable.append(away_ms)
        link.one.call("volume", "delete", "data")
        settle(*(directory / name / "pool" for name in ("one.data", "other.data")))
    print_table("A volume of 2 GiB moves to another node, and back after 1 % of it has changed",
                ["", "seconds"], [["the whole volume", f"{statistics.median(whole):.2f}"],
                                  ["back, 1 % changed", f"{statistics.median(part):.2f}"]])
    ratio = statistics.median(part) / statistics.median(whole)
    report.bar(ratio < MOST_PART, "a move of 1 % changed data in under 5 % of the time of a whole one", f"{100 * ratio:.1f} %")
    report.bar(max(unavailable) < MOST_UNAVAILABLE_MS, f"a moved volume is unavailable for under {MOST_UNAVAILABLE_MS} ms",
               f"{max(unavailable)} ms at most, {statistics.median(unavailable):.0f} ms in the median")
