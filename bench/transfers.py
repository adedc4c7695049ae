# SPDX-License-Identifier: Apache-2.0
"""Volumes from one node to another, over a link between two network namespaces: a clone by skycap, with mutual TLS, beside
what one would do by hand without encryption. All begin with the contents in memory and end when everything is on the
target's disk. They take turns.

CPU is the time of the programs of each side, without what the kernel does behind them. The first byte is when the
target's link has received more than a handshake. The gzip way is that of Concourse's baggageclaim: a tar through gzip at
its default level; its HTTP is left out."""

import os
import pathlib
import statistics
import subprocess
import time
from dataclasses import dataclass

from harness import NotMeasured, print_table, run_program, times
from nodes import Cluster, Machine, join
from streams import mount_btrfs

SOURCE_ADDRESS, TARGET_ADDRESS = "10.98.0.1", "10.98.0.2"
REGISTRY_PORT, NODE_PORT, PORT = 8999, 8443, 9000
POOL_SIZE = "12Gi"
HANDSHAKE_BYTES = 128 << 10
LARGE_BYTES = 2 << 30
SMALL_FILES, SMALL_BYTES = 50_000, 4096
MOST_SECONDS = 600
ROUNDS = 5  # at most

SKYCAP, BTRFS, TAR, RSYNC, GZIP, SOCKET = (
    "skycap volume clone --node", "btrfs send | nc | btrfs receive", "tar | nc | tar", "rsync daemon",
    "tar | gzip | nc | gunzip | tar", "nc of as many bytes to /dev/null")


# ---- contents ----


def fill_large(path):
    """Bytes that cannot be compressed, and no two blocks of them equal."""
    with open(path / "large", "wb") as file:
        for _ in range(LARGE_BYTES >> 24):
            file.write(os.urandom(1 << 24))


def fill_small(path):
    for number in range(SMALL_FILES):
        directory = path / f"d{number // 500}"
        if number % 500 == 0:
            directory.mkdir()
        (directory / f"f{number}").write_bytes(os.urandom(SMALL_BYTES))


@dataclass
class Contents:
    title: str
    fill: object
    data_bytes: int


CONTENTS = [Contents("one file of 2 GiB", fill_large, LARGE_BYTES),
            Contents("50,000 files of 4 KiB", fill_small, SMALL_FILES * SMALL_BYTES)]


# ---- one transfer ----


@dataclass
class Transfer:
    seconds: float
    first_byte_ms: float
    source_cpu: float
    target_cpu: float


class Watch:
    """The time since it was made, and when the first byte has arrived at a machine."""

    def __init__(self, machine):
        self.machine, self.at_start = machine, machine.received_bytes()
        self.first_ms = None
        self.started = time.monotonic()

    def elapsed(self):
        return time.monotonic() - self.started

    def wait_for(self, processes):
        """Until all have ended. Their CPU seconds."""
        used = {}
        while len(used) < len(processes):
            if self.first_ms is None and self.machine.received_bytes() - self.at_start > HANDSHAKE_BYTES:
                self.first_ms = 1e3 * self.elapsed()
            for process in processes:
                if process not in used and (found := reap(process)) is not None:
                    used[process] = found
            if self.elapsed() > MOST_SECONDS:
                raise NotMeasured(f"it did not end in {MOST_SECONDS} s")
            time.sleep(0.001 if self.first_ms is None else 0.005)
        return [used[process] for process in processes]


def reap(process):
    """CPU seconds of a process that has ended and of its children; None: it goes on."""
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise NotMeasured(f"{process.args[-1]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


class Link:
    """Two machines with a link, on each a btrfs of its own, and a node of skycap with a pool of its own."""

    def __init__(self, build, directory, stack):
        self.directory, self.stack = directory, stack
        self.source, self.target = Machine(stack), Machine(stack)
        join(self.source, self.target, (SOURCE_ADDRESS, TARGET_ADDRESS))
        self.from_, self.to = (mount_btrfs(stack, directory, name) for name in ("from", "to"))
        cluster = Cluster(build, directory, stack)
        cluster.start_registry(self.source, f"{SOURCE_ADDRESS}:{REGISTRY_PORT}")
        pool = ("--backend", "btrfs", "--pool-size", POOL_SIZE)
        self.one = cluster.start_node(self.source, "one", f"{SOURCE_ADDRESS}:{NODE_PORT}", *pool)
        self.other = cluster.start_node(self.target, "other", f"{TARGET_ADDRESS}:{NODE_PORT}", *pool)
        cluster.wait_until_settled()

    def fill(self, contents):
        """The same contents in a volume and by hand."""
        path = self.directory / "volume"
        self.one.call("volume", "create", "data", "--size", "8Gi", "--node", "one", "--publish", path)
        contents.fill(path)
        run_program(["btrfs", "-q", "subvolume", "create", self.from_ / "data"], 60)
        run_program(["cp", "-a", f"{path}/.", self.from_ / "data"], 600)
        with open(self.directory / "bytes", "wb") as file:
            for _ in range(contents.data_bytes >> 20):
                file.write(os.urandom(1 << 20))
        os.sync()

    def empty(self):
        self.one.call("volume", "unpublish", "data", self.directory / "volume")
        self.one.call("volume", "delete", "data")
        run_program(["btrfs", "-q", "subvolume", "delete", self.from_ / "data"], 60)
        settle(self.from_, self.directory / "one.data/pool")

    # Each returns a Transfer.

    def by_pipes(self, send, receive):
        """A shell at each end, which ends when its pipe has."""
        target = subprocess.Popen(self.target.command("bash", "-o", "pipefail", "-c", receive), stdin=subprocess.DEVNULL)
        wait_for_listener(self.target, PORT)
        watch = Watch(self.target)
        source = subprocess.Popen(self.source.command("bash", "-o", "pipefail", "-c", send), stdin=subprocess.DEVNULL)
        source_cpu, target_cpu = watch.wait_for([source, target])
        return Transfer(watch.elapsed(), watch.first_ms, source_cpu, target_cpu)

    def by_netcat(self, send, receive):
        """`receive` reads its standard input and leaves everything on the disk."""
        return self.by_pipes(f"{send} | nc -N {TARGET_ADDRESS} {PORT}", f"nc -d -l {TARGET_ADDRESS} {PORT} | {receive}")

    def by_skycap(self):
        """Of a clone of its own: a later copy of the same volume may be shorter."""
        self.one.call("volume", "clone", "data", "origin", "--node", "one")
        before = [node.process.cpu_seconds() for node in (self.one, self.other)]
        watch = Watch(self.target)
        clone = subprocess.Popen([self.one.cluster.skycap, "volume", "clone", "origin", "copy", "--node", "other",
                                  "--endpoint", f"unix:{self.one.socket}"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watch.wait_for([clone])
        run_program(["sync", "--file-system", self.directory / "other.data/pool"], 600)
        seconds = watch.elapsed()
        source, target = (node.process.cpu_seconds() - was for node, was in zip((self.one, self.other), before))
        for name in ("copy", "origin"):
            self.one.call("volume", "delete", name)
        settle(*(self.directory / name / "pool" for name in ("one.data", "other.data")))
        return Transfer(seconds, watch.first_ms, source, target)

    def by_btrfs(self):
        """As by skycap, a snapshot is taken for the copy: its files are not in memory."""
        snapshot = self.from_ / "snapshot"
        found = self.by_netcat(
            f"(btrfs -q subvolume snapshot -r {self.from_}/data {snapshot} && btrfs -q send {snapshot})",
            f"btrfs -q receive {self.to} && sync -f {self.to}")
        for path in (snapshot, self.to / "snapshot"):
            run_program(["btrfs", "-q", "subvolume", "delete", path], 60)
        settle(self.from_, self.to)
        return found

    def into_directory(self, transfer):
        """Of files, to an empty subvolume."""
        copy = self.to / "copy"
        run_program(["btrfs", "-q", "subvolume", "create", copy], 60)
        found = transfer(copy)
        run_program(["btrfs", "-q", "subvolume", "delete", copy], 60)
        settle(self.to)
        return found

    def by_tar(self):
        return self.into_directory(lambda copy: self.by_netcat(
            f"tar -C {self.from_}/data -c .", f"tar -C {copy} -x && sync -f {copy}"))

    def by_gzip(self):
        return self.into_directory(lambda copy: self.by_netcat(
            f"tar -C {self.from_}/data -c . | gzip", f"gunzip | tar -C {copy} -x && sync -f {copy}"))

    def by_socket(self):
        return self.by_pipes(f"nc -N {TARGET_ADDRESS} {PORT} <{self.directory}/bytes",
                             f"nc -d -l {TARGET_ADDRESS} {PORT} >/dev/null")

    def by_rsync(self):
        """The daemon of the target takes one copy and is ended."""
        settings, pid = self.directory / "rsyncd.conf", self.directory / "rsyncd.pid"
        settings.write_text(f"use chroot = no\nuid = 0\ngid = 0\npid file = {pid}\n"
                            f"[copy]\npath = {self.to}/copy\nread only = no\n")
        return self.into_directory(lambda copy: self.by_pipes(
            f"rsync -aHAX --whole-file {self.from_}/data/ rsync://{TARGET_ADDRESS}:{PORT}/copy/ && "
            f"sync -f {copy} && kill $(cat {pid})",
            f"rsync --daemon --no-detach --address {TARGET_ADDRESS} --port {PORT} --config {settings} || [ $? = 20 ]"))

    def ways(self):
        return {SKYCAP: self.by_skycap, BTRFS: self.by_btrfs, TAR: self.by_tar, RSYNC: self.by_rsync,
                GZIP: self.by_gzip, SOCKET: self.by_socket}


def wait_for_listener(machine, port):
    """In /proc/net/tcp the state of a listener is 0A."""
    deadline = time.monotonic() + 10
    table = pathlib.Path(f"/proc/{machine.holder.pid}/net/tcp")
    while not any(fields[1].endswith(f":{port:04X}") and fields[3] == "0A"
                  for fields in map(str.split, table.read_text().splitlines()[1:])):
        if time.monotonic() > deadline:
            raise NotMeasured(f"nobody listens at port {port}")
        time.sleep(0.005)


def settle(*paths):
    """What was deleted is not to disturb what comes next."""
    for path in paths:
        run_program(["btrfs", "filesystem", "sync", path], 600)
        run_program(["btrfs", "subvolume", "sync", path], 600)


# ---- all of them ----


def warm(link):
    """All begin with the contents in memory."""
    for path in (link.directory / "volume", link.from_ / "data"):
        run_program(["tar", "-C", path, "-cf", "/dev/zero", "."], 600)


def median(found, field):
    return statistics.median(getattr(transfer, field) for transfer in found)


def print_contents(contents, found, rounds):
    print_table(
        f"{contents.title} to another node (median of {rounds} rounds)",
        ["", "seconds", "MB/s", "CPU s source", "CPU s target", "first byte ms"],
        [[name, f"{median(runs, 'seconds'):.2f}", f"{contents.data_bytes / 1e6 / median(runs, 'seconds'):,.0f}",
          f"{median(runs, 'source_cpu'):.2f}", f"{median(runs, 'target_cpu'):.2f}", f"{median(runs, 'first_byte_ms'):.0f}"]
         for name, runs in found.items()])


def compare(report, contents, found):
    def faster(other):
        return times([run.seconds for run in found[other]], [run.seconds for run in found[SKYCAP]])

    bars = [(BTRFS, 1), (TAR, 2)] + ([(GZIP, 5)] if contents.fill is fill_large else [])
    for other, wanted in bars:
        ratio = faster(other)
        report.bar(ratio >= wanted, f"{contents.title}: at least {wanted} times as fast as {other}", f"{ratio:.2f} times")


def measure_contents(link, contents, repeats, report):
    link.fill(contents)
    rounds = min(repeats, ROUNDS)
    ways = link.ways()
    found = {name: [] for name in ways}
    for number in range(rounds):
        for name in reversed(ways) if number % 2 else ways:
            warm(link)
            found[name].append(ways[name]())
    link.empty()
    print_contents(contents, found, rounds)
    compare(report, contents, found)


def measure(build, directory, stack, arguments, report):
    link = Link(build, directory, stack)
    for contents in CONTENTS:
        measure_contents(link, contents, arguments.repeats, report)
