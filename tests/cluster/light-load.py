#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A light load on a cluster, until SIGTERM: tests/cluster/light-load.py PROGRAM DIRECTORY COUNT

Each of three clients creates a volume, clones it to another node, moves it, lists all and deletes
both, again and again, at any of the nodes node-1 to node-COUNT, whose sockets are DIRECTORY/NODE.sock.
A call that ends with a code that asks for a repetition is repeated, at another node, until it
succeeds. Any other code is a problem, and so is a call that has not succeeded after two minutes. A
volume that has moved must be there, and one that was deleted must be gone.
At the end it tells how often each code was answered and the problems; exit code 1 if there are any.
"""

import collections
import random
import signal
import sys
import threading
import time
import traceback

from actions import CONTROLLER, node_of, volume_request
from calls import Client

CLIENTS = 3
TRY_AGAIN = frozenset(["UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED"])
CALL_SECONDS = 20
MOST_SECONDS = 120  # for one call and its repetitions
PAUSE_SECONDS = 0.2
BYTES = 8 << 20


class Load:
    def __init__(self, program, directory, count):
        self.nodes = [f"node-{number + 1}" for number in range(count)]
        self.clients = {node: Client(program, f"unix:{directory}/{node}.sock") for node in self.nodes}
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.codes = collections.Counter()
        self.problems = []

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    def ask(self, what, method, request, wanted="OK"):
        """The reply, when the answer is the wanted one; None after a problem."""
        end = time.monotonic() + MOST_SECONDS
        while True:
            node = random.choice(self.nodes)
            answer = self.clients[node].call(method, request, CALL_SECONDS)
            with self.lock:
                self.codes[answer.code] += 1
            if answer.code == wanted:
                return answer.reply
            if answer.code not in TRY_AGAIN or time.monotonic() > end:
                self.problem(f"{what} at {node}: {answer.code}: {answer.message}")
                return None
            time.sleep(PAUSE_SECONDS)

    def create(self, name, node, source=None):
        request = volume_request(name, "tree", BYTES, node)
        if source:
            request["volumeContentSource"] = {"volume": {"volumeId": source}}
        reply = self.ask(f"create {name} on {node}", CONTROLLER + "CreateVolume", request)
        return reply and reply["volume"]["volumeId"]

    def move(self, volume, target):
        request = {"volumeId": volume, "nodeId": target}
        if self.ask(f"move {volume} to {target}", "skycap.v1.Moves/Move", request) is None:
            return False
        what = f"get {volume}, which has moved to {target}"
        reply = self.ask(what, CONTROLLER + "ControllerGetVolume", {"volumeId": volume})
        if reply and node_of(reply["volume"]) != target:
            self.problem(f"{what}: {reply}")
        return reply is not None

    def delete(self, volume):
        request = {"volumeId": volume}
        is_ok = self.ask(f"delete {volume}", CONTROLLER + "DeleteVolume", request) is not None
        what = f"get {volume}, which was deleted"
        get = CONTROLLER + "ControllerGetVolume"
        return is_ok and self.ask(what, get, request, "NOT_FOUND") is not None

    def use_one(self, name):
        """The life of a volume and of its clone. False: there was a problem."""
        home, other, third = random.sample(self.nodes, 3)
        volume = self.create(name, home)
        clone = volume and self.create(name + "-clone", other, volume)
        return (
            clone
            and self.move(volume, third)
            and self.ask("list", CONTROLLER + "ListVolumes", {}) is not None
            and self.delete(volume)
            and self.delete(clone)
        )

    def run(self, number):
        try:
            made = 0
            while not self.stopping.is_set() and self.use_one(f"load-{number}-{made}"):
                made += 1
        except Exception:
            self.problem("the test itself: " + traceback.format_exc())


def main():
    program, directory, count = sys.argv[1:]
    load = Load(program, directory, int(count))
    signal.signal(signal.SIGTERM, lambda *_: load.stopping.set())
    threads = [threading.Thread(target=load.run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("calls:", ", ".join(f"{code} {times}" for code, times in load.codes.most_common()))
    print(*load.problems, sep="\n")
    return 1 if load.problems or not load.codes["OK"] else 0


if __name__ == "__main__":
    sys.exit(main())
