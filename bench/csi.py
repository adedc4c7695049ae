# SPDX-License-Identifier: Apache-2.0
"""The csi part: skycap beside csi-driver-host-path, both driven by tests/peers/go/cmd/csi-bench, and beside the bare
system calls that a driver cannot do without (bench/bare-storage, tests/store-bench). Needs root: volumes are mounted.

The other driver is not part of the project. SKYCAP_HOSTPATH or --hostpath names its program; without it the bars that
compare with it are reported as not measured."""

import contextlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import time

from harness import NotMeasured, Process, accepts_connections, print_table, run_program
from rpc import install_peers

OURS, THEIRS = "skycap serve", "csi-driver-host-path"
SOME_VOLUMES = 5000
CROWD = 16
FILL_CLIENTS = 16
PAGE = 1000
FILES, FILE_BYTES = 10_000, 107_375  # 1 GiB in all
POOL_SIZE = "40G"
COPIES = 30
STARTS = 5


# ---- drivers ----


class Driver:
    """A CSI driver that runs; `data` is all that it keeps."""

    def __init__(self, bench, process, socket, data, start=None):
        self.bench, self.process, self.socket, self.data, self.start = bench, process, socket, data, start
        self.name = process.name

    def run(self, verb, seconds=None, **flags):
        """What csi-bench says of one run of a verb, and the CPU seconds of both sides."""
        flags["seconds"] = seconds or self.bench.seconds
        words = [f"-{name}={value}" for name, value in flags.items()]
        before = self.process.cpu_seconds()
        result = run_measured([self.bench.peers / "csi-bench", *words, f"unix:{self.socket}", verb], 3600)
        result["server_cpu"] = self.process.cpu_seconds() - before
        return result

    def memory_mib(self):
        return self.process.memory_mib()


def cpu_of_ended():
    """CPU seconds of all programs that have run and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_measured(command, seconds):
    """What a program of the bench says of its run, as JSON, and the CPU seconds that it took."""
    before = cpu_of_ended()
    return json.loads(run_program(command, seconds)) | {"client_cpu": cpu_of_ended() - before}


def rate(result, kind="create"):
    return result["times"][kind]["count"] / result["seconds"]


def cpu_us(results, side, kind="create"):
    """CPU of one side for each of what was counted."""
    return statistics.median(1e6 * result[side] / result["times"][kind]["count"] for result in results)


def median_us(results, kind):
    return statistics.median(result["times"][kind]["p50_us"] for result in results)


class Bench:
    """Where things are, and what one topic has started. Everything it mounts is below its directory."""

    def __init__(self, root, build, arguments, directory, stack):
        self.build, self.directory, self.stack = build, directory, stack
        self.peers = root / "build/peers"
        self.repeats, self.seconds = arguments.repeats, arguments.seconds
        self.many, self.hostpath = arguments.many, arguments.hostpath
        stack.callback(unmount_below, directory)

    def start_driver(self, name, label, command, data):
        socket = self.directory / f"{label}.sock"
        command = [str(word).replace("SOCKET", str(socket)) for word in command]
        data.mkdir(exist_ok=True)

        def start():
            process = Process(name, command, self.directory / f"{label}.log")
            self.stack.enter_context(process)
            return process

        driver = Driver(self, start(), socket, data, start)
        driver.process.wait_for_socket(socket)
        driver.run("null", seconds=0.1)
        driver.memory_at_start = driver.memory_mib()
        return driver

    def start_skycap(self, name=OURS, label="skycap"):
        data = self.directory / f"{label}-data"
        return self.start_driver(name, label, [
            self.build / "skycap", "serve", "--endpoint", "unix:SOCKET", "--data", data, "--backend", "btrfs",
            "--pool-size", POOL_SIZE, "--log-level", "warn"], data)

    def start_hostpath(self):
        data = self.directory / "hostpath-data"
        return self.start_driver(THEIRS, "hostpath", [
            self.hostpath, "--endpoint", "unix://SOCKET", "--nodeid", "bench", "--drivername", "hostpath.csi.k8s.io",
            "--statedir", data], data)

    def start_all(self):
        """Ours first; theirs only if it is there."""
        return [self.start_skycap()] + ([self.start_hostpath()] if self.hostpath else [])

    def rounds(self, *steps):
        """The results of each step, which take turns."""
        results = [[] for _ in steps]
        for _ in range(self.repeats):
            for step, found in zip(steps, results):
                found.append(step())
        return results

    # What cannot be avoided, each by itself.

    def bare(self, driver, verb, *more, seconds=None):
        directory = driver.data / "pool" / "bare"
        directory.mkdir(exist_ok=True)
        return run_measured([self.build / "bench/bare-storage", verb, directory, seconds or self.seconds, *more], 600)

    def commit(self, driver, threads, verb="write"):
        """One entry written durably, on the file system where the driver's own store is."""
        store = driver.data / "bare-store"
        before = cpu_of_ended()
        text = run_program([self.build / "tests/store-bench", verb, f"sqlite:{store}", threads, self.seconds], 600)
        per_second, p50 = map(float, re.search(r"threads: (\d+)/s, p50 (\d+) us", text).groups())
        cpu = cpu_of_ended() - before
        return {"per_second": per_second, "p50_us": p50, "cpu_us": 1e6 * cpu / (per_second * self.seconds)}

    def runs(self):
        return f"median of {self.repeats} runs of {self.seconds:g} s"


def unmount_below(directory):
    """What a driver that ended in an unusual way has left."""
    lines = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1] for line in lines if line.split()[1].startswith(f"{directory}/")]
    for point in reversed(points):
        subprocess.run(["umount", point], stderr=subprocess.DEVNULL)


# ---- create and delete ----


def settle(driver):
    """What the file systems still have to do of what was done before is not to disturb what comes next: btrfs gives back
    what was deleted some time later, with a commit for each subvolume."""
    os.sync()
    pool = driver.data / "pool"
    if pool.is_mount():
        run_program(["btrfs", "filesystem", "sync", pool], 600)
        run_program(["btrfs", "subvolume", "sync", pool], 600)


def fill(driver, count):
    """So many volumes."""
    result = driver.run("fill", count=count, clients=FILL_CLIENTS)
    settle(driver)
    return result


def pair_figures(bench, drivers):
    """{name: (pairs a second, create us, delete us, create p99 us, pairs a second by a crowd, and then the CPU us of a pair,
    the driver's and the client's)}"""
    steps = [(lambda d=d, n=n: d.run("pairs", clients=n)) for d in drivers for n in (1, CROWD)]
    results = bench.rounds(*steps)
    figures = {}
    for driver, alone, crowd in zip(drivers, results[::2], results[1::2]):
        p99 = statistics.median(result["times"]["create"]["p99_us"] for result in alone)
        figures[driver.name] = (statistics.median(map(rate, alone)), median_us(alone, "create"),
                                median_us(alone, "delete"), p99, statistics.median(map(rate, crowd)),
                                cpu_us(crowd, "server_cpu"), cpu_us(crowd, "client_cpu"))
    return figures


PAIRS_HEAD = ["", "pairs/s", "create p50 us", "delete p50 us", "create p99 us", f"pairs/s by {CROWD} clients"]


def pair_rows(figures):
    return [[name, f"{alone:,.0f}", f"{create:.0f}", f"{delete:.0f}", f"{p99:,.0f}", f"{crowd:,.0f}"]
            for name, (alone, create, delete, p99, crowd, *_) in figures.items()]


def limit_figures(bench, ours):
    """The parts of a durable create, and how many pairs of each there could be. Very many subvolumes are deleted for it:
    in a pool of their own, which goes with them."""
    with contextlib.ExitStack() as stack:
        other = bench.start_skycap("limits", "limits")
        stack.enter_context(other.process)
        null, nulls, commit, commits, subvolume, subvolumes = bench.rounds(
            lambda: ours.run("null"), lambda: ours.run("null", clients=CROWD),
            lambda: bench.commit(ours, 1), lambda: bench.commit(ours, CROWD, "cycle"),
            lambda: bench.bare(other, "subvolumes", 1), lambda: bench.bare(other, "subvolumes", CROWD))
    return {
        "null": median_us(null, "call"),
        "commit": statistics.median(result["p50_us"] for result in commit),
        "commits": statistics.median(result["per_second"] for result in commits),
        "create": median_us(subvolume, "create"),
        "delete": median_us(subvolume, "delete"),
        "subvolumes": statistics.median(map(rate, subvolumes)),
        "cpu": {
            "bare subvolume ioctls": (cpu_us(subvolumes, "client_cpu"), 0),
            "bare commits of the store": (statistics.median(result["cpu_us"] for result in commits), 0),
            "two null RPCs": (2 * cpu_us(nulls, "server_cpu", "call"), 2 * cpu_us(nulls, "client_cpu", "call")),
        },
    }


def limit_rows(limits):
    parts = [("bare subvolume ioctls", limits["create"], limits["delete"], f"{limits['subvolumes']:,.0f}"),
             ("bare commit of the store", limits["commit"], limits["commit"], f"{limits['commits']:,.0f}"),
             ("null RPC", limits["null"], limits["null"], "-")]
    return [[name, f"{1e6 / (create + delete):,.0f}", f"{create:.0f}", f"{delete:.0f}", "-", crowd]
            for name, create, delete, crowd in parts]


def print_crowd(figures, limits):
    """What a pair takes of the processors, where they are what there is too little of. Gives the most pairs a second that
    the parts alone, and this client, leave room for."""
    rows = [(name, *values[5:]) for name, values in figures.items()] + [(n, *cpu) for n, cpu in limits["cpu"].items()]
    print_table(f"CPU us of a pair made by {CROWD} clients", ["", "the driver's, or the part's", "the client's"],
                [[name, f"{own:.0f}", f"{client:.0f}" if client else "-"] for name, own, client in rows])
    most = os.cpu_count() * 1e6 / sum(sum(cpu) for cpu in limits["cpu"].values())
    print(f"\nOn {os.cpu_count()} processors the parts alone, with this client, leave room for {most:,.0f} pairs/s at most.")
    return most


def compare_rates(report, figures, column, least, what, more=""):
    if THEIRS not in figures:
        return report.miss_figure(what, f"no {THEIRS}")
    ours, theirs = figures[OURS][column], figures[THEIRS][column]
    report.bar(ours >= least * theirs, what, f"{ours:,.0f} and {theirs:,.0f}, {ours / theirs:.2f} times{more}")


def pairs_topic(bench, report):
    drivers = bench.start_all()
    ours = drivers[0]
    memory = {driver.name: [driver.memory_at_start] for driver in drivers}
    empty = pair_figures(bench, drivers)
    limits = limit_figures(bench, ours)
    print_table(f"CreateVolume and DeleteVolume, no volume beside ({bench.runs()})", PAIRS_HEAD,
                pair_rows(empty) + limit_rows(limits))
    most = print_crowd(empty, limits)
    for driver in drivers:
        fill(driver, SOME_VOLUMES)
    some = pair_figures(bench, drivers)
    print_table(f"The same with {SOME_VOLUMES:,} volumes beside", PAIRS_HEAD, pair_rows(some))
    for driver in drivers:
        memory[driver.name].append(driver.memory_mib())
    print_table("Memory", ["", "RSS MiB when idle", f"with {SOME_VOLUMES:,} volumes"],
                [[name, *(f"{value:.1f}" for value in values)] for name, values in memory.items()])
    compare_rates(report, empty, 0, 1.3, f"durable create+delete at least 1.3 times {THEIRS} (not durable), empty")
    compare_rates(report, some, 0, 10, f"at least 10 times with {SOME_VOLUMES:,} volumes")
    compare_rates(report, empty, 4, 5, f"at least 5 times with {CROWD} clients",
                  f"; the parts alone leave room for {most:,.0f} on {os.cpu_count()} processors")
    least = limits["create"] + limits["commit"] + limits["null"]
    create = empty[OURS][1]
    report.bar(create <= 1.6 * least, "a create within 1.6 times subvolume + commit + null RPC, p50",
               f"{create:.0f} us and {limits['create']:.0f} + {limits['commit']:.0f} + {limits['null']:.0f} us, "
               f"{create / least:.2f} times")
    report.bar(memory[OURS][0] < 6, "idle RSS under 6 MiB", f"{memory[OURS][0]:.1f} MiB")


# ---- snapshot and clone ----


def write_files(directory):
    """As much as a middling project tree, of bytes that cannot be compressed."""
    for number in range(FILES):
        place = directory / f"{number // 100}"
        place.mkdir(exist_ok=True)
        (place / f"{number}").write_bytes(os.urandom(FILE_BYTES))
    os.sync()


def fill_one(bench, driver, label):
    """A volume with FILES files in it; its id and its directory."""
    directory = bench.directory / label
    directory.mkdir()
    volume = driver.run("open", directory=directory)["volume"]
    write_files(directory / "target")
    return volume, directory


def copy_ours(bench, driver, volume, directory):
    """p50 us of a snapshot, of a clone, and of the bare ioctl; they take turns."""
    results = bench.rounds(lambda: driver.run("snapshots", volume=volume, count=COPIES),
                           lambda: driver.run("clones", volume=volume, count=COPIES),
                           lambda: bench.bare(driver, "snapshots", directory / "target", COPIES, seconds=60))
    return [median_us(found, "create") for found in results]


def copy_theirs(driver, volume):
    """Once: it packs all files for a snapshot."""
    return [driver.run(verb, volume=volume, count=1)["times"]["create"]["p50_us"] for verb in ("snapshots", "clones")]


def copies_topic(bench, report):
    figures = {}
    for number, driver in enumerate(bench.start_all()):
        volume, directory = fill_one(bench, driver, f"copies-{number}")
        if driver.name == OURS:
            *figures[OURS], bare = copy_ours(bench, driver, volume, directory)
        else:
            figures[THEIRS] = copy_theirs(driver, volume)
        driver.run("close", volume=volume, directory=directory)
    ours = figures[OURS]
    print_table(f"A volume with {FILES:,} files and 1 GiB ({bench.repeats} times {COPIES} copies, p50; {THEIRS}: one)",
                ["", "CreateSnapshot ms", "clone ms"],
                [[name, *(f"{value / 1e3:,.2f}" for value in values)] for name, values in figures.items()] +
                [["bare snapshot ioctl", *[f"{bare / 1e3:.2f}"] * 2]])
    report.bar(ours[1] <= 1.5 * bare, "a clone within 1.5 times the bare snapshot ioctl, p50",
               f"{ours[1] / 1e3:.2f} and {bare / 1e3:.2f} ms, {ours[1] / bare:.2f} times")
    what = f"a clone at least 50 times as fast as {THEIRS}'s"
    if THEIRS in figures:
        report.bar(50 * ours[1] <= figures[THEIRS][1], what,
                   f"{ours[1] / 1e3:.2f} and {figures[THEIRS][1] / 1e3:,.0f} ms, "
                   f"{figures[THEIRS][1] / ours[1]:,.0f} times")
    else:
        report.miss_figure(what, f"no {THEIRS}")


# ---- publish ----


def publish_topic(bench, report):
    drivers = bench.start_all()
    steps = []
    for number, driver in enumerate(drivers):
        directory = bench.directory / f"publish-{number}"
        directory.mkdir()
        steps.append(lambda driver=driver, directory=directory: driver.run("publish", directory=directory))
    *results, bare = bench.rounds(*steps, lambda: bench.bare(drivers[0], "mounts"))
    rows = [[driver.name, median_us(found, "publish"), median_us(found, "unpublish")]
            for driver, found in zip(drivers, results)]
    rows.append(["bare bind mount and umount", median_us(bare, "mount"), median_us(bare, "unmount")])
    print_table(f"NodePublishVolume and NodeUnpublishVolume, staged before ({bench.runs()})",
                ["", "publish p50 us", "unpublish p50 us"],
                [[name, *(f"{us:.0f}" for us in times)] for name, *times in rows])


# ---- very many volumes ----


def start_again(driver, end):
    """Ends it and starts it again: milliseconds until it has answered a call."""
    end(driver.process.popen)
    driver.process.popen.wait()
    begin = time.monotonic()
    driver.process = driver.start()
    while not accepts_connections(driver.socket):
        if driver.process.popen.poll() is not None or time.monotonic() > begin + 60:
            raise NotMeasured(f"{driver.name} did not start again: {driver.process.log.read_text()[-500:]}")
        time.sleep(0.001)
    # Who comes before the storage is open waits.
    subprocess.run([driver.bench.build / "skycap", "probe", "--endpoint", f"unix:{driver.socket}"], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    return 1e3 * (time.monotonic() - begin)


def start_figures(driver):
    """After an orderly end (the pool is mounted again), and after SIGKILL (it is mounted still)."""
    return [statistics.median(start_again(driver, end) for _ in range(STARTS))
            for end in (lambda popen: popen.terminate(), lambda popen: popen.kill())]


def many_topic(bench, report):
    if not bench.many:
        print("\nleft out, by --many 0: very many volumes")
        return
    full_name = f"with {bench.many:,} volumes"
    full, empty = bench.start_skycap(full_name, "many"), bench.start_skycap("empty", "empty")
    filled = fill(full, bench.many)
    memory = [full.memory_at_start, full.memory_mib()]
    figures = pair_figures(bench, [empty, full])
    bare = bench.rounds(*((lambda d=d: bench.bare(d, "subvolumes", 1)) for d in (empty, full)))
    print_table(f"skycap alone, filled at {rate(filled):,.0f} volumes/s ({bench.runs()})", PAIRS_HEAD,
                pair_rows(figures) + [[f"bare subvolume ioctls, {name}", f"{statistics.median(map(rate, found)):,.0f}",
                                       *(f"{median_us(found, kind):.0f}" for kind in ("create", "delete")), "-", "-"]
                                      for name, found in zip(figures, bare)])
    listed = full.run("list", page=PAGE)
    if listed["listed"] != bench.many:
        raise NotMeasured(f"{listed['listed']} of {bench.many} volumes were listed")
    memory.append(full.memory_mib())
    starts = start_figures(full)
    memory.append(full.memory_mib())
    print_table(f"skycap {full_name}", ["", ""], [
        [f"ListVolumes of all, in pages of {PAGE:,}", f"{listed['seconds'] * 1e3:,.0f} ms"],
        ["  one page, p50", f"{listed['times']['page']['p50_us'] / 1e3:.1f} ms"],
        ["start after an orderly end", f"{starts[0]:.0f} ms"],
        ["start after SIGKILL", f"{starts[1]:.0f} ms"],
        ["RSS idle and empty", f"{memory[0]:.1f} MiB"],
        ["  after filling", f"{memory[1]:.1f} MiB"],
        ["  after pairs and lists", f"{memory[2]:.1f} MiB"],
        ["  after the last start", f"{memory[3]:.1f} MiB"]])
    cost, least = (figures[name][1] + figures[name][2] for name in (full_name, "empty"))
    report.bar(cost <= 1.2 * least, f"a call {full_name} costs at most 1.2 times that of empty, p50 of create + delete",
               f"{cost:.0f} and {least:.0f} us, {cost / least:.2f} times")
    report.bar(max(memory[1:]) < 10, f"RSS under 10 MiB {full_name}", f"{max(memory[1:]):.1f} MiB")
    report.bar(max(starts) < 100, f"start under 100 ms {full_name}", f"{starts[0]:.0f} and {starts[1]:.0f} ms")


# ---- all ----

TOPICS = {
    "create and delete": pairs_topic,
    "snapshot and clone": copies_topic,
    "publish": publish_topic,
    "very many volumes": many_topic,
}


def measure(root, build, arguments, report):
    with report.topic("csi"):
        if os.geteuid() != 0:
            raise NotMeasured("needs root: volumes are mounted")
        install_peers(root, "go")
        measure_topics(root, build, arguments, report)


def measure_topics(root, build, arguments, report):
    if not arguments.hostpath:
        print(f"\n{THEIRS} is not compared: SKYCAP_HOSTPATH does not say where its program is")
    for name, topic in TOPICS.items():
        with report.topic(name), contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="skycap-bench-"))
            topic(Bench(root, build, arguments, pathlib.Path(directory), stack), report)
