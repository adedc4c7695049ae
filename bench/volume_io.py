# SPDX-License-Identifier: Apache-2.0
"""The io part: reads and writes inside volumes, measured with fio. As root. Each kind of volume is measured on each
stack beside the same stack made by hand with mkfs, losetup and mount, which is the limit for us; and beside a plain
directory of the host's file system, which is what csi-driver-host-path and local-path give.

A loop device over a preallocated file stands for a disk of one's own; the row "disk" is that device itself. The file
of the workloads is laid out first, so that nothing measures the first allocation but the row of sequential writes."""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass

from csi import unmount_below
from harness import TICKS, NotMeasured, Noise, Process, print_table, run_program

FILE_BYTES = 512 << 20
VOLUME_SIZE = "4Gi"
DISK_BYTES = 12 << 30
POOL_SIZE = "12G"
SMALL_FILES, SMALL_FILE_BYTES = 50_000, 700
WANTED = 0.95  # of the same stack by hand

# What fio does; how the figure is printed, and whether more of it is better.
WORKLOADS = {
    "seq write": (["--rw=write", "--bs=1M", "--iodepth=4"], "MB/s"),
    "seq read": (["--rw=read", "--bs=1M", "--iodepth=4"], "MB/s"),
    "rand read 1": (["--rw=randread", "--bs=4k", "--iodepth=1"], "IOPS"),
    "rand read 16": (["--rw=randread", "--bs=4k", "--iodepth=16"], "IOPS"),
    "rand write 1": (["--rw=randwrite", "--bs=4k", "--iodepth=1"], "IOPS"),
    "rand write 16": (["--rw=randwrite", "--bs=4k", "--iodepth=16"], "IOPS"),
    "8k + fdatasync": (["--rw=randwrite", "--bs=8k", "--ioengine=psync", "--fdatasync=1", "--direct=0"], "per s"),
}


# ---- places ----


@dataclass
class Place:
    """Where a workload runs: a directory, or a block device."""

    name: str
    path: pathlib.Path

    def file(self):
        return self.path if self.path.is_block_device() else self.path / "fio"


@dataclass
class Kind:
    """A kind of volume: how skycap makes it, and what it is made of by hand."""

    name: str
    fs: str = None  # in an image
    is_block: bool = False
    nocow: str = None  # the parameter

    def flags(self):
        flags = ["--size", VOLUME_SIZE]
        flags += ["--fs", self.fs] if self.fs else []
        flags += ["--block"] if self.is_block else []
        return flags + (["--parameter", f"nocow={self.nocow}"] if self.nocow else [])

    def is_nocow(self):
        """What the parameter is by default: only images are written in place."""
        return self.nocow == "true" if self.nocow else bool(self.fs or self.is_block)


TREE, NOCOW_TREE = Kind("directory"), Kind("directory, nocow", nocow="true")
EXT4, XFS, BLOCK = Kind("ext4 image", "ext4"), Kind("xfs image", "xfs"), Kind("block", is_block=True)
COW_EXT4 = Kind("ext4 image, nocow=false", "ext4", nocow="false")
ON_BTRFS = [TREE, NOCOW_TREE, EXT4, COW_EXT4, XFS, BLOCK]
ELSEWHERE = [TREE, EXT4, XFS, BLOCK]


def on_btrfs(path):
    return run_program(["stat", "--file-system", "--format=%T", path], 10).strip() == "btrfs"


class Bench:
    """What one stack has mounted and attached; all of it goes with the stack."""

    def __init__(self, build, arguments, directory, stack):
        self.skycap = build / "skycap"
        self.repeats, self.seconds = arguments.repeats, arguments.seconds
        self.hostpath, self.peers = arguments.hostpath, build / "peers"
        self.directory, self.stack = directory, stack
        stack.callback(unmount_below, directory)

    def attach(self, file):
        device = run_program(["losetup", "--find", "--show", "--direct-io=on", file], 30).strip()
        self.stack.callback(subprocess.run, ["losetup", "--detach", device])  # once nothing uses it any more
        return pathlib.Path(device)

    def mount(self, device, name, fs, *options):
        run_program(["mkfs." + fs, "-q", *(["-F", "-m", "0"] if fs == "ext4" else ["-f"]), device], 120)
        path = self.directory / name
        path.mkdir()
        run_program(["mount", *options, device, path], 30)
        self.stack.callback(subprocess.run, ["umount", path])
        return path

    def disk(self, name, size=DISK_BYTES, preallocate=True):
        """A device over a file of the host's file system."""
        file = self.directory / name
        with open(file, "wb") as image:
            image.truncate(size)
            if preallocate:
                os.posix_fallocate(image.fileno(), 0, size)
        self.stack.callback(file.unlink)
        return self.attach(file)

    # By hand.

    def make(self, base, kind, label):
        name = f"{label}-{kind.name}".translate(str.maketrans(" =", "--", ","))
        holder = base / f"hand-{name}"
        holder.mkdir()
        if on_btrfs(base) and kind.is_nocow():
            run_program(["chattr", "+C", holder], 10)
        if not kind.fs and not kind.is_block:
            return holder
        image = holder / "image"
        with open(image, "wb") as file:
            file.truncate(4 << 30)
        device = self.attach(image)
        return device if kind.is_block else self.mount(device, name, kind.fs)

    # By skycap.

    def serve(self, label, *flags):
        data, socket = self.directory / f"{label}-data", self.directory / f"{label}.sock"
        command = [self.skycap, "serve", "--endpoint", f"unix:{socket}", "--data", data, *flags]
        server = Process("skycap", command, self.directory / f"{label}.log")
        self.stack.enter_context(server)
        server.wait_for_socket(socket)
        return lambda *words: run_program([self.skycap, *words, "--endpoint", f"unix:{socket}"], 120)

    def publish(self, call, kind, label):
        name = f"{label}-{kind.name}".translate(str.maketrans(" =", "--", ","))
        path = self.directory / f"volume-{name}"
        call("volume", "create", name, *kind.flags(), "--publish", path)
        self.stack.callback(call, "volume", "unpublish", name, path)
        return path

    def pairs(self, label, call, base, kinds):
        """Ours and by hand, kind by kind."""
        places = []
        for kind in kinds:
            places.append(Place(f"skycap, {kind.name}", self.publish(call, kind, label)))
            places.append(Place(f"by hand, {kind.name}", self.make(base, kind, label)))
        return places


# ---- stacks ----


def host_stack(bench):
    bench.directory.joinpath("host").mkdir()
    return [Place("host directory", bench.directory / "host"), Place("disk", bench.disk("disk"))]


def pool_stack(bench):
    call = bench.serve("pool", "--backend", "btrfs", "--pool-size", POOL_SIZE)
    base = bench.mount(bench.disk("by-hand", preallocate=False), "by-hand-pool", "btrfs", "-o", "noatime")
    return bench.pairs("pool", call, base, ON_BTRFS)


def given_stack(fs, kinds):
    def stack(bench):
        base = bench.mount(bench.disk("ours"), "given", fs, "-o", "noatime")
        other = bench.mount(bench.disk("by-hand"), "given-by-hand", fs, "-o", "noatime")
        bench.directory.joinpath("given-data").symlink_to(base)
        call = bench.serve("given", "--backend", "btrfs" if fs == "btrfs" else "dir")
        return [Place(f"plain {fs}", other), *bench.pairs("given", call, other, kinds)]
    return stack


def directory_stack(bench):
    call = bench.serve("dir", "--backend", "dir")
    base = bench.directory / "by-hand"
    base.mkdir()
    return bench.pairs("dir", call, base, ELSEWHERE)


STACKS = {
    "the host": host_stack,
    "the default: a pool file": pool_stack,
    "btrfs on a disk": given_stack("btrfs", ON_BTRFS),
    "xfs on a disk": given_stack("xfs", ELSEWHERE),
    "dir on the host's file system": directory_stack,
}


# ---- measuring ----


@dataclass
class Run:
    figure: float  # MB/s, IOPS or operations per second
    cpu_us: float  # of the whole machine, the kernel's own threads included, per operation


def run_fio(place, workload, seconds):
    flags, unit = WORKLOADS[workload]
    before = Noise.busy_seconds()
    output = run_program(["fio", "--name=bench", f"--filename={place.file()}", f"--size={FILE_BYTES}", "--direct=1",
                          "--ioengine=libaio", "--time_based", f"--runtime={seconds}", "--randrepeat=0",
                          "--output-format=json", *flags], seconds + 120)
    used = Noise.busy_seconds() - before
    job = json.loads(output[output.index("{"):])["jobs"][0]
    if job["error"]:
        raise NotMeasured(f"fio in {place.name}: error {job['error']}")
    side = job["read"] if "read" in workload else job["write"]
    if not side["total_ios"]:
        raise NotMeasured(f"fio did nothing in {place.name}")
    figure = side["bw_bytes"] / 1e6 if unit == "MB/s" else side["iops"]
    return Run(figure, 1e6 * used / side["total_ios"])


def lay_out(place):
    run_program(["fio", "--name=bench", f"--filename={place.file()}", f"--size={FILE_BYTES}", "--direct=1",
                 "--ioengine=libaio", "--rw=write", "--bs=1M", "--iodepth=4", "--end_fsync=1"], 300)


def make_archive(path):
    content = path.with_name("small")
    content.write_bytes(os.urandom(SMALL_FILE_BYTES))
    with tarfile.open(path, "w") as archive:
        for number in range(SMALL_FILES):
            archive.add(content, f"{number // 500}/{number}")


def sync(path):
    run_program(["sync", "--file-system", path], 300)


def time_small_files(place, archive):
    """Seconds to unpack many small files and to remove them, each until it is on the disk."""
    target = place.path / "small"
    target.mkdir()
    start = time.monotonic()
    run_program(["tar", "-xf", archive, "-C", target], 300)
    sync(place.path)
    unpacked = time.monotonic()
    shutil.rmtree(target)
    sync(place.path)
    return unpacked - start, time.monotonic() - unpacked


def measure_places(bench, places, archive):
    """Runs of each workload in each place; the places take turns."""
    runs = {(place.name, workload): [] for place in places for workload in WORKLOADS}
    files = {place.name: [] for place in places if not place.path.is_block_device()}
    for place in places:
        lay_out(place)
    for _ in range(bench.repeats):
        for workload in WORKLOADS:
            for place in places:
                runs[place.name, workload].append(run_fio(place, workload, bench.seconds))
    for place in places * min(bench.repeats, 3):
        if place.name in files:
            files[place.name].append(time_small_files(place, archive))
    return runs, files


# ---- telling ----


def median(runs, name="figure"):
    return statistics.median(getattr(run, name) for run in runs)


def print_stack(title, places, runs, files):
    head = ["", *(f"{workload}, {unit}" for workload, (_, unit) in WORKLOADS.items()), "unpack s", "remove s"]
    rows = []
    for place in places:
        small = [f"{statistics.median(column):.2f}" for column in zip(*files.get(place.name, []))] or ["-", "-"]
        rows.append([place.name, *(f"{median(runs[place.name, workload]):,.0f}" for workload in WORKLOADS), *small])
    print_table(title, head, rows)
    print_table("CPU us per operation, of the whole machine", ["", *WORKLOADS],
                [[place.name, *(f"{median(runs[place.name, workload], 'cpu_us'):,.0f}" for workload in WORKLOADS)]
                 for place in places])


def compare_stack(report, title, places, runs):
    """Our volumes beside the same stack by hand, turn by turn."""
    for place in places:
        other = place.name.replace("skycap, ", "by hand, ")
        if other == place.name:
            continue
        ratios = {workload: statistics.median(one.figure / two.figure for one, two in
                                              zip(runs[place.name, workload], runs[other, workload]))
                  for workload in WORKLOADS}
        least = min(ratios, key=ratios.get)
        report.bar(ratios[least] >= WANTED, f"{title}: {place.name} at least {WANTED} of the same by hand",
                   f"least {ratios[least]:.2f} ({least})")


def measure(_root, build, arguments, report):
    if os.geteuid() != 0:
        raise NotMeasured("io: needs root, to mount")
    with tempfile.TemporaryDirectory(prefix="skycap-io-", dir=arguments.directory) as name:
        archive = pathlib.Path(name) / "small.tar"
        make_archive(archive)
        for title, stack in STACKS.items():
            with report.topic(f"io, {title}"), contextlib.ExitStack() as cleanup:
                directory = pathlib.Path(tempfile.mkdtemp(dir=name))
                bench = Bench(build, arguments, directory, cleanup)
                places = stack(bench)
                runs, files = measure_places(bench, places, archive)
                print_stack(f"{title} ({arguments.repeats} rounds of {arguments.seconds} s)", places, runs, files)
                compare_stack(report, title, places, runs)
