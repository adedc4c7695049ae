# SPDX-License-Identifier: Apache-2.0
"""Rounds of faults: see tests/cluster/README.md."""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from actions import MOVE_SECONDS, Actions
from faults import Injector
from journal import Journal
from lab import Lab, is_allowed, undo_storage
from model import Model
from verify import Verifier
from workload import Worker

SKIPPED = 77
FEW_ROUNDS, FEW_SECONDS = 5, 90  # for make test
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parse(flags):
    parser = argparse.ArgumentParser(description="Rounds of faults in a cluster of five nodes.")
    parser.add_argument("--rounds", type=int, help=f"default {FEW_ROUNDS}, if there is time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--store", choices=["etcd", "sqlite"], default="etcd")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--backends", default="btrfs,dir,btrfs,xfs,dir", help="of the nodes, in turn")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10, help="of faults in a round")
    parser.add_argument("--faults", type=int, default=4, help="in a round, at most")
    parser.add_argument(
        "--power", action="store_true", help="cut the power of the nodes' and registries' disks, nothing else"
    )
    parser.add_argument("--moves", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--limit", type=float, help="begin no round after so many seconds")
    parser.add_argument("--go-on", action="store_true", help="after a problem, too")
    options = parser.parse_args([*flags, *sys.argv[1:]])
    if not options.rounds:
        options.rounds, options.limit = FEW_ROUNDS, options.limit or FEW_SECONDS
    build = os.environ.get("SKYCAP_BUILD") or ROOT / "build"
    options.skycap = str(pathlib.Path(build) / "skycap")
    return options


def enter_namespaces(options):
    if os.environ.get("OWN_NAMESPACE"):
        return
    if not is_allowed():
        print("needs root and the right to make namespaces")
        sys.exit(SKIPPED)
    tools = ["mkfs.btrfs", "mkfs.xfs", "mkfs.ext4", "losetup", "ip"]
    for tool in tools + (["etcd"] if options.store == "etcd" else []):
        if not shutil.which(tool):
            print(f"needs {tool}, which is not installed")
            sys.exit(SKIPPED)
    os.environ["OWN_NAMESPACE"] = "1"
    command = ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv]
    os.execvp(command[0], command)


class Rounds:
    def __init__(self, options):
        self.options = options
        self.journal = Journal(f"{options.base}/journal")
        self.lab = Lab(options)
        self.model = Model()
        self.actions = Actions(self.lab, self.model, self.journal, options.moves)
        self.verifier = Verifier(self.actions)
        self.told = 0

    def run_round(self, number):
        journal, options = self.journal, self.options
        began = time.monotonic()
        rng = random.Random(f"{options.seed}/{number}")
        journal.round = number
        journal.is_calm = number % 8 == 0 and not options.power
        stopping = threading.Event()
        workers = [
            Worker(self.actions, random.Random(f"{options.seed}/{number}/{i}"), stopping, options)
            for i in range(options.clients)
        ]
        for worker in workers:
            worker.start()
        injector = Injector(self.lab, journal, rng)
        injector.run(options.seconds, 0 if journal.is_calm else rng.randint(1, options.faults))
        stopping.set()
        for worker in workers:  # they may wait for what is broken
            worker.join(rng.uniform(0, 1))
        injector.heal_all()
        for worker in workers:
            worker.join(4 * MOVE_SECONDS)
            if worker.is_alive():
                journal.problem("a client does not end")
        self.check_round()
        self.tell(number, injector.names, time.monotonic() - began)

    def check_round(self):
        for process in self.lab.processes.values():
            crash = process.crash()
            if crash:
                self.journal.problem(crash)
                process.start()
        problem = self.lab.settle()
        if problem:
            self.journal.problem(problem)
        self.verifier.check()

    def tell(self, number, faults, seconds):
        codes, longest = self.journal.take_codes()
        counts = " ".join(f"{code}={count}" for code, count in sorted(codes.items()))
        things = f"{self.model.count(False)} volumes, {self.model.count(True)} snapshots"
        print(
            f"round {number}: {seconds:.0f} s, {things}, longest call {longest:.1f} s, {counts};",
            ", ".join(faults) or "no faults",
            flush=True,
        )
        self.tell_problems()

    def tell_problems(self):
        for problem in self.journal.problems[self.told :]:
            print("FAILED:", problem, flush=True)
        self.told = len(self.journal.problems)

    def run(self):
        began = time.monotonic()
        self.lab.start()
        for number in range(self.options.rounds):
            if self.options.limit and time.monotonic() - began > self.options.limit:
                print(f"{number} rounds in the time allowed")
                break
            self.run_round(number)
            if self.journal.problems and not self.options.go_on:
                break
        self.verifier.check_transfers()
        for problem in self.lab.end():
            self.journal.problem(problem)
        self.verifier.check_stopped()
        self.tell_problems()
        return self.journal.problems


def interrupt(number, frame):
    raise KeyboardInterrupt


def main(flags=()):
    options = parse(flags)
    enter_namespaces(options)
    signal.signal(signal.SIGTERM, interrupt)
    given = os.environ.get("SKYCAP_TMP")
    options.base = tempfile.mkdtemp(prefix="skycap-rounds-", dir=given)
    print(f"seed {options.seed}, store {options.store}, in {options.base}", flush=True)
    rounds = Rounds(options)
    problems = ["it was interrupted"]
    try:
        problems = rounds.run()
    finally:
        rounds.lab.kill()
        undo_storage(options.base)
        finish(options, problems)
    return 1 if problems else 0


def finish(options, problems):
    if not problems:
        shutil.rmtree(options.base, ignore_errors=True)
        return
    print(f"repeat with --seed {options.seed}; the logs are in {options.base}")
    if os.environ.get("SKYCAP_TMP"):  # which goes with the test
        kept = tempfile.mkdtemp(
            prefix="skycap-rounds-kept-", dir=pathlib.Path(os.environ["SKYCAP_TMP"]).parent
        )
        logs = [path for path in pathlib.Path(options.base).iterdir() if path.is_file()]
        subprocess.run(["cp", *map(str, logs), kept])
        print(f"and kept in {kept}")
