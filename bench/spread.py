# SPDX-License-Identifier: Apache-2.0
"""One snapshot of 1 GiB goes to eight nodes, which fetch it from each other. What counts is how much the node that took it
sends; the time is that of one disk, which all nodes share here."""

import os
import time

from harness import NotMeasured, print_table
from nodes import Cluster, Machine

TARGETS = 8
BYTES = 1 << 30
BLOCK = 1 << 24
MOST_TIMES = 3
POOL_SIZE = "3Gi"
PORT = 9100
SENT = "skycap_transfer_sent_bytes_total"


def sent_bytes(machine, number):
    """What the node has sent to others, as its metrics say."""
    text = machine.run("/usr/bin/python3", "-c", "import sys, urllib.request\n"
                       "print(urllib.request.urlopen(sys.argv[1]).read().decode())", f"http://127.0.0.{number}:{PORT}/metrics")
    for line in text.splitlines():
        if line.startswith(SENT + " "):
            return int(float(line.split()[1]))
    raise NotMeasured(f"node-{number} does not tell {SENT}")


def fill(node, directory):
    path = directory / "volume"
    node.call("volume", "publish", "base", path)
    with open(path / "large", "wb") as file:
        for _ in range(BYTES // BLOCK):
            file.write(os.urandom(BLOCK))
        os.fsync(file.fileno())
    node.call("volume", "unpublish", "base", path)


def measure(build, directory, stack, _arguments, report):
    machine = Machine(stack)
    cluster = Cluster(build, directory, stack)
    cluster.start_registry(machine, "127.0.0.100:8999")
    for number in range(1, TARGETS + 2):
        cluster.start_node(machine, f"node-{number}", f"127.0.0.{number}:8443", "--backend", "btrfs", "--pool-size", POOL_SIZE,
                           "--http", f"127.0.0.{number}:{PORT}")
    cluster.wait_until_settled()
    first = cluster.nodes[0]
    first.call("volume", "create", "base", "--node", first.name, "--size", "2Gi")
    fill(first, directory)
    first.call("snapshot", "create", "base", "image")
    started = time.monotonic()
    first.call("snapshot", "spread", "image", "--to", "all", seconds=3600)
    seconds = time.monotonic() - started
    sent = [sent_bytes(machine, number) for number in range(1, TARGETS + 2)]
    print_table(f"One snapshot of 1 GiB to {TARGETS} nodes", ["", "GiB sent"],
                [["the node that took it", f"{sent[0] / BYTES:.2f}"], ["the one that sent most of the others", f"{max(sent[1:]) / BYTES:.2f}"],
                 ["all nodes", f"{sum(sent) / BYTES:.2f}"], ["seconds", f"{seconds:.1f}"]])
    times = sent[0] / BYTES
    report.bar(times <= MOST_TIMES, f"one snapshot to {TARGETS} nodes: the node that took it sends it at most {MOST_TIMES} times",
               f"{times:.2f} times")
