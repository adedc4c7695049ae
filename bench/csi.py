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

from harness import NotMeasured, Process, accepts_connections, print_table, run_program, times
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
PART_SECONDS = 0.02


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


def median_us(results, kind, which="p50_us"):
    return statistics.median(result["times"][kind][which] for result in results)


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
            "--pool-size", POOL_SIZE], data)

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


class Pairs:
    """Volumes made and deleted by one client, then by a crowd: the runs of each driver, which take turns with those of others
    and with the parts."""

    def __init__(self, bench, drivers, parts=None):
        self.names = [driver.name for driver in drivers]
        parts = parts or {}
        alone = [(lambda d=d: d.run("pairs", clients=1)) for d in drivers]
        crowd = [(lambda d=d: d.run("pairs", clients=CROWD)) for d in drivers]
        results = bench.rounds(*alone, *parts.values())
        self.alone = dict(zip(self.names, results))
        self.parts = dict(zip(parts, results[len(drivers):]))
        self.crowd = dict(zip(self.names, bench.rounds(*crowd)))

    def rows(self):
        return [[name, f"{statistics.median(map(rate, alone)):,.0f}",
                 *(f"{median_us(alone, kind):,.0f}" for kind in ("create", "delete")),
                 f"{median_us(alone, 'create', 'p99_us'):,.0f}", f"{statistics.median(map(rate, crowd)):,.0f}"]
                for name, alone, crowd in ((name, self.alone[name], self.crowd[name]) for name in self.names)]

    def crowd_cpu(self):
        """(name, the driver's CPU us for a pair, the client's)"""
        return [(name, cpu_us(found, "server_cpu"), cpu_us(found, "client_cpu")) for name, found in self.crowd.items()]

    def costs(self, name):
        """us of a create and a delete, run by run."""
        return [sum(result["times"][kind]["p50_us"] for kind in ("create", "delete")) for result in self.alone[name]]

    def bar(self, report, found, least, what, more=""):
        """`found` is self.alone or self.crowd: ours at least so many times theirs."""
        if THEIRS not in found:
            return report.miss_figure(what, f"no {THEIRS}")
        ours, theirs = ([rate(result) for result in found[name]] for name in (OURS, THEIRS))
        faster = times(ours, theirs)
        report.bar(faster >= least, what,
                   f"{statistics.median(ours):,.0f} and {statistics.median(theirs):,.0f}, {faster:.2f} times{more}")


PAIRS_HEAD = ["", "pairs/s", "create p50 us", "delete p50 us", "create p99 us", f"pairs/s by {CROWD} clients"]


def create_parts(bench, ours, other):
    """What a durable create cannot do without. The subvolumes are made in another pool than ours, and not many: btrfs has to
    give back each that is deleted, and what is measured next would meet that."""
    def subvolumes():
        found = bench.bare(other, "subvolumes", 1, seconds=PART_SECONDS)
        settle(other)
        return found

    return {"null": lambda: ours.run("null"), "commit": lambda: bench.commit(ours, 1), "subvolume": subvolumes}


def part_times(pairs):
    """us of the parts of a create, run by run."""
    return {"subvolume": [result["times"]["create"]["p50_us"] for result in pairs.parts["subvolume"]],
            "commit": [result["p50_us"] for result in pairs.parts["commit"]],
            "null": [result["times"]["call"]["p50_us"] for result in pairs.parts["null"]]}


def crowd_limits(bench, ours, other):
    """The same by a crowd: pairs a second, where there is such a thing, and (name, CPU us for a pair, the client's)."""
    nulls, commits, subvolumes = bench.rounds(
        lambda: ours.run("null", clients=CROWD), lambda: bench.commit(ours, CROWD, "cycle"),
        lambda: bench.bare(other, "subvolumes", CROWD))
    return {
        "commits": statistics.median(result["per_second"] for result in commits),
        "subvolumes": statistics.median(map(rate, subvolumes)),
        "cpu": [("bare subvolume ioctls", cpu_us(subvolumes, "client_cpu"), 0),
                ("bare commits of the store", statistics.median(result["cpu_us"] for result in commits), 0),
                ("two null RPCs", 2 * cpu_us(nulls, "server_cpu", "call"), 2 * cpu_us(nulls, "client_cpu", "call"))],
    }


def limit_rows(pairs, crowd):
    create, commit, null = (statistics.median(found) for found in part_times(pairs).values())
    delete = median_us(pairs.parts["subvolume"], "delete")
    parts = [("bare subvolume ioctls", create, delete, f"{crowd['subvolumes']:,.0f}"),
             ("bare commit of the store", commit, commit, f"{crowd['commits']:,.0f}"),
             ("null RPC", null, null, "-")]
    return [[name, f"{1e6 / (create + delete):,.0f}", f"{create:.0f}", f"{delete:.0f}", "-", by_crowd]
            for name, create, delete, by_crowd in parts]


def print_crowd(pairs, limits):
    """What a pair takes of the processors, where they are what there is too little of. Gives the most pairs a second that
    the parts alone, and this client, leave room for."""
    print_table(f"CPU us of a pair made by {CROWD} clients", ["", "the driver's, or the part's", "the client's"],
                [[name, f"{own:.0f}", f"{client:.0f}" if client else "-"]
                 for name, own, client in pairs.crowd_cpu() + limits["cpu"]])
    most = os.cpu_count() * 1e6 / sum(own + client for _, own, client in limits["cpu"])
    print(f"\nOn {os.cpu_count()} processors the parts alone, with this client, leave room for {most:,.0f} pairs/s at most.")
    return most


def create_bar(report, pairs):
    creates = [result["times"]["create"]["p50_us"] for result in pairs.alone[OURS]]
    parts = part_times(pairs)
    slower = times(creates, map(sum, zip(*parts.values())))
    report.bar(slower <= 1.6, "a create within 1.6 times subvolume + commit + null RPC, p50",
               f"{statistics.median(creates):.0f} us and {' + '.join(f'{statistics.median(found):.0f}' for found in parts.values())}"
               f" us, {slower:.2f} times")


def measure_empty(bench, drivers):
    """Pairs with no volume beside, and their limits. Of bare subvolumes many are deleted: the pool goes with them."""
    with contextlib.ExitStack() as stack:
        other = bench.start_skycap("limits", "limits")
        stack.enter_context(other.process)
        pairs = Pairs(bench, drivers, create_parts(bench, drivers[0], other))
        return pairs, crowd_limits(bench, drivers[0], other)


def pairs_topic(bench, report):
    drivers = bench.start_all()
    memory = {driver.name: [driver.memory_at_start] for driver in drivers}
    empty, limits = measure_empty(bench, drivers)
    print_table(f"CreateVolume and DeleteVolume, no volume beside ({bench.runs()})", PAIRS_HEAD,
                empty.rows() + limit_rows(empty, limits))
    most = print_crowd(empty, limits)
    for driver in drivers:
        fill(driver, SOME_VOLUMES)
    some = Pairs(bench, drivers)
    print_table(f"The same with {SOME_VOLUMES:,} volumes beside", PAIRS_HEAD, some.rows())
    for driver in drivers:
        memory[driver.name].append(driver.memory_mib())
    print_table("Memory", ["", "RSS MiB when idle", f"with {SOME_VOLUMES:,} volumes"],
                [[name, *(f"{value:.1f}" for value in values)] for name, values in memory.items()])
    empty.bar(report, empty.alone, 1.3, f"durable create+delete at least 1.3 times {THEIRS} (not durable), empty")
    some.bar(report, some.alone, 10, f"at least 10 times with {SOME_VOLUMES:,} volumes")
    empty.bar(report, empty.crowd, 5, f"at least 5 times with {CROWD} clients",
              f"; the parts alone leave room for {most:,.0f} on {os.cpu_count()} processors")
    create_bar(report, empty)
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
    """p50 us of a snapshot, of a clone, and of the bare ioctl, run by run; they take turns."""
    results = bench.rounds(lambda: driver.run("snapshots", volume=volume, count=COPIES),
                           lambda: driver.run("clones", volume=volume, count=COPIES),
                           lambda: bench.bare(driver, "snapshots", directory / "target", COPIES, seconds=60))
    return [[result["times"]["create"]["p50_us"] for result in found] for found in results]


def copy_theirs(driver, volume):
    """Once: it packs all files for a snapshot."""
    return [[driver.run(verb, volume=volume, count=1)["times"]["create"]["p50_us"]] for verb in ("snapshots", "clones")]


def copies_topic(bench, report):
    figures = {}
    for number, driver in enumerate(bench.start_all()):
        volume, directory = fill_one(bench, driver, f"copies-{number}")
        if driver.name == OURS:
            *figures[OURS], bare = copy_ours(bench, driver, volume, directory)
        else:
            figures[THEIRS] = copy_theirs(driver, volume)
        driver.run("close", volume=volume, directory=directory)
    figures["bare snapshot ioctl"] = [bare, bare]
    ms = {name: [statistics.median(found) / 1e3 for found in values] for name, values in figures.items()}
    print_table(f"A volume with {FILES:,} files and 1 GiB ({bench.repeats} times {COPIES} copies, p50; {THEIRS}: one)",
                ["", "CreateSnapshot ms", "clone ms"],
                [[name, *(f"{value:,.2f}" for value in values)] for name, values in ms.items()])
    clone, slower = ms[OURS][1], times(figures[OURS][1], bare)
    report.bar(slower <= 1.5, "a clone within 1.5 times the bare snapshot ioctl, p50",
               f"{clone:.2f} and {statistics.median(bare) / 1e3:.2f} ms, {slower:.2f} times")
    what = f"a clone at least 50 times as fast as {THEIRS}'s"
    if THEIRS in ms:
        theirs = ms[THEIRS][1]
        report.bar(50 * clone <= theirs, what, f"{clone:.2f} and {theirs:,.0f} ms, {theirs / clone:,.0f} times")
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
    pairs = Pairs(bench, [empty, full])
    bare = bench.rounds(*((lambda d=d: bench.bare(d, "subvolumes", 1)) for d in (empty, full)))
    print_table(f"skycap alone, filled at {rate(filled):,.0f} volumes/s ({bench.runs()})", PAIRS_HEAD,
                pairs.rows() + [[f"bare subvolume ioctls, {name}", f"{statistics.median(map(rate, found)):,.0f}",
                                 *(f"{median_us(found, kind):.0f}" for kind in ("create", "delete")), "-", "-"]
                                for name, found in zip(pairs.names, bare)])
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
    cost, least = pairs.costs(full_name), pairs.costs("empty")
    report.bar(times(cost, least) <= 1.2, f"a call {full_name} costs at most 1.2 times that of empty, p50 of create + delete",
               f"{statistics.median(cost):.0f} and {statistics.median(least):.0f} us, {times(cost, least):.2f} times")
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
