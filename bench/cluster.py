# SPDX-License-Identifier: Apache-2.0
"""The cluster part: what goes from node to node (transfers.py, moves.py, spread.py), and what a cluster of five costs beside one node alone:
pages of ListVolumes, and create and delete. As root: pools are mounted, namespaces are made."""

import contextlib
import os
import pathlib
import statistics
import tempfile

import moves
import spread
import transfers
from csi import run_measured, unmount_below
from harness import NotMeasured, print_table, times
from nodes import Cluster, Machine
from rpc import install_peers

NODES = 5
VOLUMES = 20_000  # of each node
PAGES = (100, 1000)
MOST_ADDED_MS, MOST_SLOWER = 5, 1.05
FILL_CLIENTS = 16
POOL_SIZE = "20Gi"
ALONE, IN_CLUSTER, ANY_NODE = "one node alone", f"in a cluster of {NODES}", f"in a cluster of {NODES}, any node"


class Five:
    """A node alone, and a cluster. The addresses are of the loopback device of one namespace."""

    def __init__(self, root, build, directory, stack, *flags):
        self.bench = root / "build/peers/csi-bench"
        machine = Machine(stack)
        cluster = Cluster(build, directory, stack)
        self.alone = cluster.start_alone(machine, "alone", *flags)
        cluster.start_registry(machine, "127.0.0.1:8999")
        for number in range(1, NODES + 1):
            cluster.start_node(machine, f"node-{number}", f"127.0.0.{number}:8443", *flags)
        cluster.wait_until_settled()
        self.nodes = cluster.nodes

    def run(self, server, verb, **flags):
        words = [f"-{name}={value}" for name, value in flags.items()]
        return run_measured([self.bench, *words, f"unix:{server.socket}", verb], 3600)


# ---- lists ----


def page_ms(result, wanted):
    if result["listed"] != wanted:
        raise NotMeasured(f"{result['listed']} of {wanted} volumes were listed")
    return result["times"]["page"]["p50_us"] / 1e3


def lists_topic(root, build, directory, stack, arguments, report):
    five = Five(root, build, directory, stack, "--backend", "dir")
    for node in [five.alone, *five.nodes]:
        five.run(node, "fill", count=VOLUMES, clients=FILL_CLIENTS, node=node.name)
    rows = []
    for page in PAGES:
        alone, together = [], []
        for _ in range(arguments.repeats):
            alone.append(page_ms(five.run(five.alone, "list", page=page), VOLUMES))
            together.append(page_ms(five.run(five.nodes[0], "list", page=page), NODES * VOLUMES))
        added = statistics.median(other - one for one, other in zip(alone, together))
        rows.append([f"pages of {page}", f"{statistics.median(alone):.2f}", f"{statistics.median(together):.2f}", f"{added:.2f}"])
        report.bar(added < MOST_ADDED_MS, f"ListVolumes of {NODES} nodes, pages of {page}: under {MOST_ADDED_MS} ms more "
                   "than of one node alone", f"{added:.2f} ms")
    print_table(f"ListVolumes, {VOLUMES:,} volumes on each node (p50 ms of a page, median of {arguments.repeats} runs)",
                ["", ALONE, IN_CLUSTER, "added"], rows)


# ---- create and delete ----


def pool_of(server):
    return server.cluster.directory / f"{server.name}.data/pool"


def pairs_topic(root, build, directory, stack, arguments, report):
    five = Five(root, build, directory, stack, "--backend", "btrfs", "--pool-size", POOL_SIZE)
    first = five.nodes[0]
    ways = {ALONE: (five.alone, {}), IN_CLUSTER: (first, {"node": first.name}), ANY_NODE: (first, {})}
    found = {name: [] for name in ways}
    for number in range(arguments.repeats):
        for name in reversed(ways) if number % 2 else ways:
            server, flags = ways[name]
            found[name].append(five.run(server, "pairs", seconds=arguments.seconds, **flags))
            transfers.settle(*map(pool_of, [five.alone, *five.nodes]))
    costs = {name: [sum(run["times"][kind]["p50_us"] for kind in ("create", "delete")) for run in runs]
             for name, runs in found.items()}
    print_table(f"CreateVolume and DeleteVolume (p50 us, median of {arguments.repeats} runs of {arguments.seconds:g} s)",
                ["", "create", "delete", "both"],
                [[name, *(f"{statistics.median(run['times'][kind]['p50_us'] for run in runs):.0f}"
                          for kind in ("create", "delete")), f"{statistics.median(costs[name]):.0f}"]
                 for name, runs in found.items()])
    print(f"\nThe request determines the node, except for \"{ANY_NODE}\": that choice is stored in the registry.")
    slower = times(costs[IN_CLUSTER], costs[ALONE])
    report.bar(slower <= MOST_SLOWER, f"create + delete {IN_CLUSTER} at most {MOST_SLOWER} times {ALONE}", f"{slower:.3f} times")


# ---- the part ----


def transfers_topic(_root, build, directory, stack, arguments, report):
    transfers.measure(build, directory, stack, arguments, report)


def moves_topic(_root, build, directory, stack, arguments, report):
    moves.measure(build, directory, stack, arguments, report)


def spread_topic(_root, build, directory, stack, arguments, report):
    spread.measure(build, directory, stack, arguments, report)


TOPICS = {"cluster: transfers": transfers_topic, "cluster: moves": moves_topic, "cluster: fan-out": spread_topic,
          "cluster: lists": lists_topic, "cluster: create and delete": pairs_topic}


def measure(root, build, arguments, report):
    with report.topic("cluster"):
        if os.geteuid() != 0:
            raise NotMeasured("needs root: pools are mounted, and network namespaces made")
        install_peers(root, "go")
        for name, topic in TOPICS.items():
            if (arguments.stack or "") not in name:
                continue
            measure_topic(name, topic, root, build, arguments, report)


def measure_topic(name, topic, root, build, arguments, report):
    with report.topic(name), contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="skycap-cluster-", dir=arguments.directory))
        stack.callback(unmount_below, directory)
        topic(root, build, pathlib.Path(directory), stack, arguments, report)
