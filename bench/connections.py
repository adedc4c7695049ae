# SPDX-License-Identifier: Apache-2.0
"""The connections part: what the driver `csi` adds to a call, beside a relay on grpc-go that looks at nothing
(tests/peers/go/cmd/csi-relay), and ListVolumes over several connections, beside listing each by itself. The drivers
behind are skycaps too, with the backend dir in memory, so that they are fast and the difference shows. All calls are
made by tests/peers/go/cmd/csi-bench; runs of those that are compared take turns."""

import contextlib
import json
import pathlib
import statistics
import tempfile

import csi
from harness import NotMeasured, print_table
from rpc import install_peers

DIRECT, OURS, RELAY = "direct", "skycap", "grpc-go relay"
MEMORY = pathlib.Path("/dev/shm")
SHORTER = 2  # runs are so much shorter than --seconds, and so many more, so that turns come often
CROWD = 16
MOST_ADDED_US = 60
MOST_MIB = 8

CHILDREN, EACH = 5, 2000
PAGES = {500: "pages of 500", 0: "no max_entries"}

# What is called, by which verb of csi-bench, and what that calls it.
METHODS = {
    "ValidateVolumeCapabilities": ("validate", "call"),
    "ControllerGetVolume": ("get", "call"),
    "CreateVolume": ("pairs", "create"),
    "DeleteVolume": ("pairs", "delete"),
}
VERBS = list(dict.fromkeys(verb for verb, _ in METHODS.values()))


class Bench(csi.Bench):
    """Drivers, and what stands in front of them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.repeats, self.seconds = self.repeats * SHORTER, self.seconds / SHORTER

    def start_skycap(self, name, *flags):
        label = name.replace(" ", "-")
        data = self.directory / f"{label}-data"
        return self.start_driver(name, label, [self.build / "skycap", "serve", "--endpoint", "unix:SOCKET",
                                               "--data", data, *flags], data)

    def start_child(self, name):
        return self.start_skycap(name, "--backend", "dir")

    def start_front(self, name, connections):
        """Skycap with these connections, {name: what its file says}."""
        directory = self.directory / f"{name.replace(' ', '-')}-connections"
        directory.mkdir()
        for label, text in connections.items():
            (directory / f"{label}.yaml").write_text(json.dumps(text))
        return self.start_skycap(name, "--connections", directory)

    def start_relay(self, child):
        return self.start_driver(RELAY, "relay", [self.peers / "csi-relay", "--listen", "unix:SOCKET",
                                                  "--to", f"unix:{child.socket}"], self.directory / "relay-data")


def to_child(child):
    return {"driver": "csi", "options": {"endpoint": f"unix://{child.socket}"}}


def run(driver, verb, **flags):
    """What csi-bench says of one run, and the CPU time that the driver itself took meanwhile."""
    before = driver.process.cpu_seconds()
    result = driver.run(verb, **flags)
    result["cpu"] = driver.process.cpu_seconds() - before
    return result


# ---- what a call costs ----


def call_count(result):
    return sum(times["count"] for times in result["times"].values())


def cpu_us(results):
    return 1e6 * sum(result["cpu"] for result in results) / sum(map(call_count, results))


def per_second(results):
    return statistics.median(call_count(result) / result["seconds"] for result in results)


def quantile(results, kind, which):
    return statistics.median(result["times"][kind][which] for result in results)


def added_us(results, direct, kind):
    """The difference of medians, turn by turn: what disturbs one turn disturbs both sides."""
    return statistics.median(slow["times"][kind]["p50_us"] - fast["times"][kind]["p50_us"]
                             for slow, fast in zip(results, direct))


def measure_calls(bench, ways, clients):
    """{(way, verb): results}"""
    found = {}
    for verb in VERBS:
        results = bench.rounds(*((lambda way=way: run(way, verb, clients=clients)) for way in ways))
        found |= {(way.name, verb): result for way, result in zip(ways, results)}
    return found


def print_waits(bench, alone):
    rows = []
    for method, (verb, kind) in METHODS.items():
        direct = alone[DIRECT, verb]
        row = [method, f"{quantile(direct, kind, 'p50_us'):.0f}"]
        for name in (OURS, RELAY):
            row += [f"{quantile(alone[name, verb], kind, 'p50_us'):.0f}",
                    f"{added_us(alone[name, verb], direct, kind):+.0f}"]
        rows.append(row + [f"{quantile(alone[name, verb], kind, 'p99_us'):.0f}" for name in (DIRECT, OURS, RELAY)])
    print_table(f"A lone caller's wait, us ({bench.runs()})",
                ["", "direct p50", f"{OURS} p50", "added", f"{RELAY} p50", "added", "direct p99", f"{OURS} p99",
                 f"{RELAY} p99"], rows)


def print_costs(alone, crowd):
    print_table("CPU of what stands between, us per call", ["", OURS, RELAY, f"{OURS}, {CROWD} clients",
                                                           f"{RELAY}, {CROWD} clients"],
                [[verb] + [f"{cpu_us(found[name, verb]):.1f}" for found in (alone, crowd) for name in (OURS, RELAY)]
                 for verb in VERBS])
    print_table(f"Calls per second by {CROWD} clients", ["", DIRECT, OURS, RELAY],
                [[verb] + [f"{per_second(crowd[name, verb]):,.0f}" for name in (DIRECT, OURS, RELAY)]
                 for verb in VERBS])


def calls_topic(bench, report):
    child = bench.start_child(DIRECT)
    ours, relay = bench.start_front(OURS, {"child": to_child(child)}), bench.start_relay(child)
    alone, crowd = (measure_calls(bench, [child, ours, relay], clients) for clients in (1, CROWD))
    memory = {way.name: way.memory_mib() for way in (ours, relay)}
    print_waits(bench, alone)
    print_costs(alone, crowd)
    print_table("Memory of what stands between, MiB", ["", "RSS after start", "after load", "at most"],
                [[way.name, f"{way.memory_at_start:.1f}", f"{memory[way.name]:.1f}",
                  f"{way.process.memory_mib('VmHWM'):.1f}"] for way in (ours, relay)])
    added = {method: added_us(alone[OURS, verb], alone[DIRECT, verb], kind)
             for method, (verb, kind) in METHODS.items()}
    report.bar(max(added.values()) <= MOST_ADDED_US, f"the driver csi adds at most {MOST_ADDED_US} us to the median",
               ", ".join(f"{method} {us:+.0f} us" for method, us in added.items()))
    costs = [(verb, cpu_us(found[OURS, verb]), cpu_us(found[RELAY, verb])) for found in (alone, crowd) for verb in VERBS]
    report.bar(all(mine < theirs for _, mine, theirs in costs), "less CPU per call than the relay, alone and in a crowd",
               ", ".join(f"{verb} {mine:.1f} and {theirs:.1f} us" for verb, mine, theirs in costs))
    report.bar(memory[OURS] < MOST_MIB, f"RSS after load under {MOST_MIB} MiB", f"{memory[OURS]:.1f} MiB")


# ---- lists ----


def list_all(drivers, page):
    """Lists each through, one after the other: seconds, and the CPU time of the drivers."""
    results = [run(driver, "list", page=page) for driver in drivers]
    listed = sum(result["listed"] for result in results)
    if listed != CHILDREN * EACH:
        raise NotMeasured(f"{listed} of {CHILDREN * EACH} volumes were listed")
    return {name: sum(result[name] for result in results) for name in ("seconds", "cpu")}


def list_row(name, drivers, results):
    row = [name]
    for found in results:
        row += [f"{1e3 * statistics.median(one['seconds'] for one in found):.1f}",
                f"{1e3 * statistics.mean(one['cpu'] for one in found):.1f}"]
    return row + [f"{sum(driver.memory_at_start for driver in drivers):.1f}",
                  f"{sum(driver.memory_mib() for driver in drivers):.1f}",
                  f"{sum(driver.process.memory_mib('VmHWM') for driver in drivers):.1f}"]


def start_lists(bench):
    """{name: the drivers that are listed, one after the other}"""
    children = [bench.start_child(f"child {number}") for number in range(CHILDREN)]
    for child in children:
        csi.fill(child, EACH)
    front = bench.start_front("csi front", {f"c{number}": to_child(child) for number, child in enumerate(children)})
    names = [f"c{number}" for number in range(CHILDREN)]
    local = bench.start_front("local front", {name: {"driver": "local", "options": {
        "data": str(bench.directory / f"local-{name}"), "backend": "dir"}} for name in names})
    for name in names:
        local.run("fill", connection=name, count=EACH, clients=csi.FILL_CLIENTS)
    return {f"{CHILDREN} drivers directly, one after the other": children,
            f"skycap, {CHILDREN} connections csi": [front], f"skycap, {CHILDREN} connections local": [local]}


def lists_topic(bench, report):
    arrangements = start_lists(bench)
    steps = [(lambda drivers=drivers, page=page: list_all(drivers, page))
             for drivers in arrangements.values() for page in PAGES]
    results = bench.rounds(*steps)
    rows = [list_row(name, drivers, results[i * len(PAGES):(i + 1) * len(PAGES)])
            for i, (name, drivers) in enumerate(arrangements.items())]
    print_table(f"ListVolumes of {CHILDREN * EACH:,} volumes, {EACH:,} of each of {CHILDREN} "
                f"(median of {bench.repeats} times; CPU of what is listed, without what stands behind it)",
                ["", *(head for words in PAGES.values() for head in (f"{words} ms", "CPU ms")), "RSS MiB before",
                 "after", "at most"], rows)
    names = list(arrangements)
    direct, through = (statistics.median(one["seconds"] for one in results[i]) for i in (0, len(PAGES)))
    print(f"\n  through {names[1]}: {through / direct:.2f} times the sum of the direct ones, in {PAGES[500]}")
    memory = arrangements[names[1]][0].memory_mib()
    report.bar(memory < MOST_MIB, f"RSS under {MOST_MIB} MiB after lists of {CHILDREN * EACH:,} volumes",
               f"{memory:.1f} MiB")


# ---- all ----

TOPICS = {"calls through a connection": calls_topic, "lists over connections": lists_topic}


def measure(root, build, arguments, report):
    with report.topic("connections"):
        install_peers(root, "go")
        if not MEMORY.is_dir():
            raise NotMeasured(f"there is no {MEMORY}, where the drivers behind would keep their volumes")
    for name, topic in TOPICS.items():
        with report.topic(name), contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="skycap-bench-", dir=MEMORY))
            topic(Bench(root, build, arguments, pathlib.Path(directory), stack), report)
