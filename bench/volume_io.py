# SPDX-License-Identifier: Apache-2.0
"""The io part: reads and writes inside volumes, measured with fio. As root. Each kind of volume is measured on each
stack beside the same stack made by hand with mkfs, losetup and mount, which is the limit for us; and beside a plain
directory of the host's file system, which is what csi-driver-host-path and local-path give.

A loop device over a preallocated file stands for a disk of one's own; the row "disk" is that device itself. The file
of the workloads is laid out first, so that nothing measures the first allocation but the row of sequential writes."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass

from csi import unmount_below
from harness import NotMeasured, Noise, Process, print_table, run_program, times

FILE_BYTES = 512 << 20
VOLUME_SIZE = "4Gi"
DISK_BYTES = 8 << 30
POOL_SIZE = "8Gi"
SMALL_FILES, SMALL_FILE_BYTES = 50_000, 700
WANTED = 0.95  # of the same stack by hand
MOST_ROUNDS = 5  # times --repeats, of a figure that is below that
OURS, BEFORE, BY_HAND, PLAIN = "skycap, ", "skycap before, ", "by hand, ", "plain ext4"
RANDOM, FLUSHED, SEQUENTIAL = "rand write 16", "8k + fdatasync", "seq write"
GAINS = {RANDOM: 4, FLUSHED: 2, SEQUENTIAL: 4}  # wanted, of images of the default pool

# What fio does, and the unit of its figure. More is better.
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


def file_name(label, kind):
    return f"{label}-{kind.name}".translate(str.maketrans(" =", "--", ","))


def on_btrfs(path):
    return run_program(["stat", "--file-system", "--format=%T", path], 10).strip() == "btrfs"


class Bench:
    """What one stack has mounted and attached; all of it goes with the stack."""

    def __init__(self, build, arguments, directory, stack):
        self.skycap = build / "skycap"
        self.before = arguments.before and pathlib.Path(arguments.before).resolve()
        self.repeats, self.seconds = arguments.repeats, arguments.seconds
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
        name = file_name(label, kind)
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

    def serve(self, label, *flags, program=None):
        program = program or self.skycap
        data, socket = self.directory / f"{label}-data", self.directory / f"{label}.sock"
        command = [program, "serve", "--endpoint", f"unix:{socket}", "--data", data, *flags]
        server = Process("skycap", command, self.directory / f"{label}.log")
        self.stack.enter_context(server)
        server.wait_for_socket(socket)
        return lambda *words: run_program([program, *words, "--endpoint", f"unix:{socket}"], 120)

    def publish(self, call, kind, label):
        name = file_name(label, kind)
        path = self.directory / f"volume-{name}"
        call("volume", "create", name, *kind.flags(), "--publish", path)
        self.undo(call, "volume", "unpublish", name, path)
        return path

    def undo(self, function, *arguments):
        """Later, and whether it succeeds or not: what fails must not hide why the stack ended."""
        def run():
            with contextlib.suppress(NotMeasured):
                function(*arguments)
        self.stack.callback(run)

    def pairs(self, label, call, base, kinds):
        """Ours and by hand, kind by kind."""
        places = []
        for kind in kinds:
            places.append(Place(OURS + kind.name, self.publish(call, kind, label)))
            places.append(Place(BY_HAND + kind.name, self.make(base, kind, label)))
        return places


# ---- stacks ----

BTRFS_IOC_QUOTA_CTL, ENABLE_SIMPLE_QUOTA = 0xC0109428, 4


def enforce_sizes(base, fs):
    """Skycap needs quotas to enforce the sizes of directories, so the same stack by hand has them, too."""
    if fs == "btrfs":
        directory = os.open(base, os.O_RDONLY)
        with contextlib.suppress(OSError):  # a kernel before 6.7
            fcntl.ioctl(directory, BTRFS_IOC_QUOTA_CTL, struct.pack("QQ", ENABLE_SIMPLE_QUOTA, 0))
        os.close(directory)


def host_stack(bench):
    bench.directory.joinpath("host").mkdir()
    return [Place("directory (host-path, local-path)", bench.directory / "host"), Place("disk", bench.disk("disk"))]


def file_stack(fs, kinds):
    """A pool in a file of the host's file system."""
    def stack(bench):
        call = bench.serve("pool", "--backend", fs, "--pool-size", POOL_SIZE)
        device = bench.disk("by-hand", preallocate=fs == "xfs")
        base = bench.mount(device, "by-hand-pool", fs, "-o", "noatime")
        enforce_sizes(base, fs)
        return bench.pairs("pool", call, base, kinds)
    return stack


def disk_stack(fs, kinds):
    """A pool on a disk, beside two other disks: one with the same file system made by hand, one with ext4."""
    def stack(bench):
        call = bench.serve("disk", "--backend", fs, "--pool-device", bench.disk("ours"))
        base = bench.mount(bench.disk("by-hand"), "by-hand-disk", fs, "-o", "noatime")
        enforce_sizes(base, fs)
        plain = bench.mount(bench.disk("plain"), "plain-ext4", "ext4", "-o", "noatime")
        return [Place(PLAIN, plain), *bench.pairs("disk", call, base, kinds)]
    return stack


def earlier_stack(bench):
    """The default pool of this version beside that of an earlier one. Each pool has the same two volumes: how much a pool
    holds, and how often it was written, changes its speed."""
    places = []
    for name, label, program in (OURS, "now", bench.skycap), (BEFORE, "before", bench.before):
        call = bench.serve(label, "--backend", "btrfs", "--pool-size", POOL_SIZE, program=program)
        places += [Place(name + kind.name, bench.publish(call, kind, label)) for kind in (TREE, EXT4)]
    return places


def directory_stack(bench):
    call = bench.serve("dir", "--backend", "dir")
    base = bench.directory / "by-hand"
    base.mkdir()
    return bench.pairs("dir", call, base, ELSEWHERE)


STACKS = {
    "the host": host_stack,
    "btrfs in a file (the default)": file_stack("btrfs", ON_BTRFS),
    "xfs in a file": file_stack("xfs", ELSEWHERE),
    "btrfs on a disk": disk_stack("btrfs", ON_BTRFS),
    "xfs on a disk": disk_stack("xfs", ELSEWHERE),
    "dir on the host's file system": directory_stack,
}
EARLIER, NEIGHBOUR = "the default beside an earlier version", "a busy neighbour"


# ---- measuring ----


@dataclass
class Run:
    figure: float  # MB/s, IOPS or operations per second
    cpu_us: float  # of the whole machine, the kernel's own threads included, per operation


def run_fio(place, workload, seconds):
    flags, unit = WORKLOADS[workload]
    before = Noise.busy_seconds()
    output = run_program(["fio", "--name=bench", f"--filename={place.file()}", f"--size={FILE_BYTES}", "--direct=1",
                          "--ioengine=libaio", "--time_based", f"--runtime={seconds * 1000:.0f}ms", "--randrepeat=0",
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


def by_hand(place, places):
    """The same volume made by hand, if the place is one of ours."""
    name = BY_HAND + place.name.removeprefix(OURS)
    return next((other for other in places if place.name.startswith(OURS) and other.name == name), None)


def measure_again(bench, places, runs):
    """A single round differs by 10 % and more for no reason of ours. A figure that is below the bar gets more rounds,
    until it is not or there are many; all rounds count."""
    for place in places:
        other = by_hand(place, places)
        for workload in WORKLOADS if other else []:
            found = runs[place.name, workload]
            while len(found) < MOST_ROUNDS * bench.repeats and ratio(runs, place.name, other.name, workload) < WANTED:
                for turn in (place, other) if len(found) % 2 else (other, place):
                    runs[turn.name, workload].append(run_fio(turn, workload, bench.seconds))


def measure_places(bench, places, archive):
    """Runs of each workload in each place; the places take turns."""
    runs = {(place.name, workload): [] for place in places for workload in WORKLOADS}
    files = {place.name: [] for place in places if not place.path.is_block_device()}
    for place in places:
        lay_out(place)
    for number in range(bench.repeats):
        for workload in WORKLOADS:
            for place in reversed(places) if number % 2 else places:
                runs[place.name, workload].append(run_fio(place, workload, bench.seconds))
    measure_again(bench, places, runs)
    for place in places * min(bench.repeats, 2):
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


def ratio(runs, place, other, workload):
    """How much of the other's figure, turn by turn."""
    return times([run.figure for run in runs[place, workload]], [run.figure for run in runs[other, workload]])


def compare_by_hand(report, title, places, runs):
    """Each figure, and the mean of the stack, which chance disturbs less."""
    found = []
    for place in places:
        other = by_hand(place, places)
        if not other:
            continue
        ratios = {workload: ratio(runs, place.name, other.name, workload) for workload in WORKLOADS}
        found += ratios.values()
        least = min(ratios, key=ratios.get)
        report.bar(ratios[least] >= WANTED, f"{title}: {place.name} at least {WANTED} of the same by hand",
                   f"least {ratios[least]:.2f} ({least})")
    if found:
        mean = statistics.geometric_mean(found)
        report.bar(mean >= WANTED, f"{title}: all together at least {WANTED} of the same by hand", f"{mean:.2f}")


def compare_with_plain(report, title, places, runs):
    """Images on a disk beside a plain ext4 there."""
    for name in (OURS + kind.name for kind in (EXT4, XFS)):
        writes, flushes = (ratio(runs, name, PLAIN, workload) for workload in (RANDOM, FLUSHED))
        report.bar(writes >= 0.8, f"{title}: {name}, random writes at least 0.8 of {PLAIN}", f"{writes:.2f}")
        report.bar(1 / flushes <= 1.5, f"{title}: {name}, fdatasync at most 1.5 times {PLAIN}", f"{1 / flushes:.2f} times")


def compare_with_cow(report, title, runs):
    """What writing in place gives the images of the default pool."""
    ours, cow = OURS + EXT4.name, OURS + COW_EXT4.name
    for workload, wanted in GAINS.items():
        found = ratio(runs, ours, cow, workload)
        report.bar(found >= wanted, f"{title}: {ours}, {workload} at least {wanted} times that of nocow=false", f"{found:.1f}")


def compare_with_before(report, title, runs):
    """What users of an earlier version get by the new one."""
    for workload in WORKLOADS:
        found = ratio(runs, OURS + TREE.name, BEFORE + TREE.name, workload)
        report.bar(found >= WANTED, f"{title}: a directory, {workload} at least {WANTED} of before", f"{found:.2f}")
    for workload, wanted in GAINS.items():
        found = ratio(runs, OURS + EXT4.name, BEFORE + EXT4.name, workload)
        report.bar(found >= wanted, f"{title}: an image, {workload} at least {wanted} times that of before", f"{found:.1f}")


def compare(report, title, places, runs):
    names = [place.name for place in places]
    compare_by_hand(report, title, places, runs)
    if PLAIN in names:
        compare_with_plain(report, title, places, runs)
    if OURS + COW_EXT4.name in names and PLAIN not in names:
        compare_with_cow(report, title, runs)
    if BEFORE + EXT4.name in names:
        compare_with_before(report, title, runs)


# ---- a busy neighbour ----

QUIET = ["--rw=randwrite", "--bs=8k", "--ioengine=psync", "--fdatasync=1", "--direct=0", "--rate_iops=100"]
BUSY = ["--rw=randwrite", "--bs=64k", "--ioengine=psync", "--fdatasync=1", "--direct=0", "--numjobs=4"]
LIMIT = "write-operations-per-second"
LIMITED_TO = 200
POD = "5bca5d8a-0000-4000-8000-736b79636170"
NEIGHBOUR_SECONDS = 4


class Group:
    """A control group like that of a container, version 2 or 1."""

    def __init__(self, stack):
        root = pathlib.Path("/sys/fs/cgroup")
        self.pod = (root if (root / "cgroup.controllers").exists() else root / "blkio") / "kubepods" / f"pod{POD}"
        self.path = self.pod / "busy"
        stack.callback(self.remove, self.pod.parent.exists())
        try:
            self.path.mkdir(parents=True)
        except OSError as error:
            raise NotMeasured(f"{self.path} cannot be made: {error.strerror}") from None

    def remove(self, keeps_parent):
        for path in (self.path, self.pod) if keeps_parent else (self.path, self.pod, self.pod.parent):
            with contextlib.suppress(OSError):
                path.rmdir()

    def join(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))


def flush_p99_ms(path, flags, seconds):
    output = run_program(["fio", "--name=quiet", f"--filename={path / 'fio'}", "--size=64M", "--time_based",
                          f"--runtime={seconds * 1000:.0f}ms", "--output-format=json", *flags], seconds + 60)
    sync = json.loads(output[output.index("{"):])["jobs"][0]["sync"]["lat_ns"]
    return sync["percentile"]["99.000000"] / 1e6


@contextlib.contextmanager
def busy_writer(path, group):
    """Flushes all the time, in a group of its own."""
    command = ["fio", "--name=busy", f"--directory={path}", "--size=64M", "--time_based", "--runtime=60", *BUSY]
    writer = subprocess.Popen(command, preexec_fn=group.join, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        time.sleep(3)  # limits reach a new process within two seconds
        yield
    finally:
        os.killpg(writer.pid, signal.SIGTERM)
        writer.wait()


def neighbour(bench, report):
    call = bench.serve("neighbour", "--backend", "btrfs", "--pool-size", POOL_SIZE)
    group = Group(bench.stack)
    pods = bench.directory / "pods" / POD
    pods.mkdir(parents=True)
    paths = {}
    for name, flags in {"quiet": [], "busy": [], "limited": ["--parameter", f"{LIMIT}={LIMITED_TO}"]}.items():
        paths[name] = bench.directory / "quiet" if name == "quiet" else pods / name
        call("volume", "create", name, "--size", "2Gi", "--fs", "ext4", *flags, "--publish", paths[name])
        bench.undo(call, "volume", "unpublish", name, paths[name])
    found = {"alone": [], "beside a busy one": [], f"beside a busy one of {LIMITED_TO} writes/s": []}
    alone, beside, limited = found.values()
    for _ in range(min(bench.repeats, 3)):
        alone.append(flush_p99_ms(paths["quiet"], QUIET, NEIGHBOUR_SECONDS))
        with busy_writer(paths["busy"], group):
            beside.append(flush_p99_ms(paths["quiet"], QUIET, NEIGHBOUR_SECONDS))
        with busy_writer(paths["limited"], group):
            limited.append(flush_p99_ms(paths["quiet"], QUIET, NEIGHBOUR_SECONDS))
    print_table(f"{NEIGHBOUR}: fdatasync in a quiet volume of the default pool, 100 per second", ["", "p99 ms"],
                [[name, f"{statistics.median(values):.2f}"] for name, values in found.items()])
    gain = times(beside, limited)
    report.bar(gain > 1, f"{NEIGHBOUR}: a limit lowers the p99 of others", f"{gain:.1f} times")


# ---- the part ----


def measure_stack(bench, title, archive, report):
    places = (earlier_stack if title == EARLIER else STACKS[title])(bench)
    runs, files = measure_places(bench, places, archive)
    print_stack(f"{title} ({bench.repeats} rounds of {bench.seconds} s)", places, runs, files)
    compare(report, title, places, runs)


def choose_topics(arguments):
    topics = [*STACKS, *([EARLIER] if arguments.before else []), NEIGHBOUR]
    return [topic for topic in topics if (arguments.stack or "") in topic]


def measure(_root, build, arguments, report):
    if os.geteuid() != 0:
        report.miss_figure("io", "needs root: volumes are mounted")
        return
    with tempfile.TemporaryDirectory(prefix="skycap-io-", dir=arguments.directory) as name:
        archive = pathlib.Path(name) / "small.tar"
        make_archive(archive)
        for title in choose_topics(arguments):
            with report.topic(f"io, {title}"), contextlib.ExitStack() as cleanup:
                bench = Bench(build, arguments, pathlib.Path(tempfile.mkdtemp(dir=name)), cleanup)
                if title == NEIGHBOUR:
                    neighbour(bench, report)
                else:
                    measure_stack(bench, title, archive, report)
