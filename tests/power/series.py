# SPDX-License-Identifier: Apache-2.0
"""A series of power cuts on one machine: makes disks, boots, cuts, keeps the model, adds up."""

import collections
import json
import os
import random
import subprocess
import time
from dataclasses import dataclass, field

from model import Model

DISK_BYTES = 8 << 30
SPARE_BYTES = 1 << 20  # behind the file system, for the control's bare writes
WAIT_SECONDS = 300
TIME_FACTOR = float(os.environ.get("TIME_FACTOR") or 1)  # of an instrumented build
MORE_CUTS = 4  # of the control, if what was not flushed has been there after each
BAD_EVENTS = ("start_failed", "mount_failed", "crash")
# Codes of calls that no client deserves.
BAD_CODES = ("INTERNAL", "UNKNOWN", "DATA_LOSS", "UNAVAILABLE", "OS", "COMMAND")


@dataclass(frozen=True)
class Stack:
    fs: str
    mkfs: tuple = ()
    options: str = "rw"
    serve: tuple = ()
    compresses: bool = False
    limits_trees: bool = False
    modes: tuple = ("drop", "drop", "blocks")
    exports: bool = False  # to a repository on the same disk
    pool_bytes: int = 0  # of the disk, behind the file system, for --pool-device
    kinds: tuple = ("tree", "tree", "ext4", "xfs", "block")


# A superblock has a checksum and more than one sector, with btrfs and in every image: when a disk tears it into sectors,
# nothing can be mounted. So sectors are torn only where there are neither.
TORN = ("drop", "drop", "blocks", "sectors")
WITHOUT_FILE_SYSTEMS = ("tree", "tree", "block")
STACKS = {
    "pool": Stack(
        "ext4", serve=("--backend", "btrfs"), compresses=True, limits_trees=True
    ),
    "btrfs": Stack(
        "btrfs", serve=("--quotas",), compresses=True, limits_trees=True
    ),
    "device": Stack(
        "ext4", serve=("--backend", "btrfs"), compresses=True, limits_trees=True, pool_bytes=4 << 30
    ),
    "xfs-pool": Stack("ext4", serve=("--backend", "xfs", "--pool-size", "4Gi")),
    "dir-xfs": Stack("xfs", mkfs=("-m", "reflink=1"), serve=("--backend", "dir")),
    "exports": Stack(
        "ext4", serve=("--backend", "btrfs"), compresses=True, limits_trees=True, exports=True
    ),
    "exports-xfs": Stack("xfs", mkfs=("-m", "reflink=1"), serve=("--backend", "dir"), exports=True),
    "dir-ext4": Stack(
        "ext4", serve=("--backend", "dir"), modes=TORN, kinds=WITHOUT_FILE_SYSTEMS
    ),
}


@dataclass(frozen=True)
class Plan:
    """When the power is cut: so many milliseconds after the first of these events."""

    weight: int
    events: tuple
    ms: tuple  # upper limits; one of them is chosen
    least_ms: int = 0


PLANS = {
    # On a new disk.
    "first": Plan(8, ("starting", "work"), (60, 300, 1500)),
    "start": Plan(8, ("starting",), (50, 500)),
    "recovery": Plan(12, ("ready",), (500, 3000)),
    "work": Plan(40, ("work",), (1500, 5000), 200),
    # Then right behind the next answer of one kind.
    "answer": Plan(32, ("work",), (300, 2000)),
    # Long enough for the server to note what is durable by then. Not in short series.
    "long": Plan(3, ("work",), (40000,), 31000),
}
ANSWERS = ("create", "clone", "delete", "expand", "modify", "snapshot", "group", "ephemeral")
EXPORT_ANSWERS = ("export", "export", "import", "unexport", "prune")
FILES = (100, 5000, 40000, 200000)
LARGE_FILES = (100, 5000, 200000, 1000000)  # exports of them last longer
ANSWER_SECONDS = 8
SHORT_SERIES = 20
FORCE = {"ext4": "-F", "btrfs": "-f", "xfs": "-f"}


@dataclass
class Tally:
    cuts: collections.Counter = field(default_factory=collections.Counter)
    answered: collections.Counter = field(default_factory=collections.Counter)
    failed: collections.Counter = field(default_factory=collections.Counter)
    problems: collections.Counter = field(default_factory=collections.Counter)
    ready_ms: list = field(default_factory=list)
    lost_sectors: int = 0
    kept_sectors: int = 0
    is_quiet: bool = False


def always_kept(findings, beginning):
    """What begins so and was there after each cut."""
    return [
        what
        for what in findings[0]
        if what.startswith(beginning) and all(found[what] for found in findings)
    ]


class Series:
    def __init__(self, machine, stack_name, seed, log):
        self.machine, self.stack, self.log = machine, STACKS[stack_name], log
        self.stack_name, self.seed = stack_name, seed
        self.rng = random.Random(seed)
        self.model = Model()
        self.round = 0
        self.events, self.seen, self.waited = [], 0, 0
        self.tally = Tally()

    # ---- disks ----

    def new_disk(self):
        image = self.machine.image
        image.unlink(missing_ok=True)
        with open(image, "wb") as file:
            file.truncate(DISK_BYTES - SPARE_BYTES - self.stack.pool_bytes)
        subprocess.run(
            [f"mkfs.{self.stack.fs}", "-q", FORCE[self.stack.fs], *self.stack.mkfs, image],
            check=True,
        )
        with open(image, "r+b") as file:
            file.truncate(DISK_BYTES)
        self.model = Model()

    # ---- boots ----

    def boot(self, lies=False, **task):
        self.round += 1
        self.events, self.seen, self.waited = [], 0, 0
        common = dict(
            kind="round",
            round=self.round,
            seed=self.rng.getrandbits(30),
            fs=self.stack.fs,
            mount_options=self.stack.options,
            exports=self.stack.exports,
            file_sizes=LARGE_FILES if self.stack.exports else FILES,
            pool_start=DISK_BYTES - SPARE_BYTES - self.stack.pool_bytes,
            pool_bytes=self.stack.pool_bytes,
            serve=self.stack.serve,
            compresses=self.stack.compresses,
            limits_trees=self.stack.limits_trees,
            grows_ext4=self.machine.grows_ext4,
            slowness=self.machine.slowness * TIME_FACTOR,
            kinds=self.stack.kinds,
            restarts=True,
            works=True,
            syncs=False,
            clock_is_behind=False,
            workers=4,
            model=self.model.state(),
        )
        self.machine.boot(dict(common, **task), lies)

    def read_record(self):
        with open(self.machine.record, "rb") as file:
            file.seek(self.seen)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # its last line may be under way
        self.seen += len(whole)
        self.events += [json.loads(line) for line in whole.splitlines()]

    def next_event(self, seconds):
        """The first event that is no `wait_for` has seen yet; None after so long."""
        deadline = time.monotonic() + seconds * self.machine.slowness * TIME_FACTOR
        while self.waited == len(self.events):
            if time.monotonic() > deadline or self.machine.has_ended():
                return None
            time.sleep(0.003)
            self.read_record()
        self.waited += 1
        return self.events[self.waited - 1]

    def wait_for(self, name):
        """The next event of this name. None: it does not come, and a problem is told."""
        while True:
            event = self.next_event(WAIT_SECONDS)
            if not event:
                self.problem("the guest does not go on", waited_for=name)
            if not event or event["event"] in BAD_EVENTS:
                return None
            if event["event"] == name:
                return event

    def wait_for_answer(self, op):
        """Not for long: by chance there may be no such call."""
        deadline = time.monotonic() + ANSWER_SECONDS * self.machine.slowness
        while time.monotonic() < deadline:
            event = self.next_event(ANSWER_SECONDS)
            if not event:
                return
            if event["event"] == "done" and op == self.kind_of(event):
                return

    def kind_of(self, event):
        if not event.get("source"):
            return event["op"]
        return "import" if event["source"][0] == "export" else "clone"

    def cut(self, mode):
        lost = self.machine.cut(mode, self.rng.getrandbits(30), self.read_record)
        for event in self.events:
            self.model.apply(event)
            self.count(event)
        self.log.write("".join(json.dumps(event) + "\n" for event in self.events))
        self.log.flush()
        self.tally.lost_sectors += lost["lost_sectors"]
        self.tally.kept_sectors += lost["kept_sectors"]
        return lost

    # ---- adding up ----

    def problem(self, what, **facts):
        self.tally.problems[what] += 1
        if not self.tally.is_quiet:
            print(
                f"FAILED {self.stack_name} round {self.round}: {what}: {json.dumps(facts)}",
                flush=True,
            )

    def count(self, event):
        kind = event["event"]
        facts = {
            key: value for key, value in event.items() if key not in ("event", "what", "round")
        }
        if kind == "done":
            self.tally.answered[event["op"]] += 1
        elif kind == "ready":
            self.tally.ready_ms.append(event["ms"])
        elif kind == "problem":
            self.problem(event["what"], **facts)
        elif kind in BAD_EVENTS:
            self.problem(kind.replace("_", " "), **facts)
        elif kind == "fail":
            self.tally.failed[f"{event['op']} {event['code']}"] += 1
            if event["code"] in BAD_CODES:
                self.problem("a call failed", **facts)

    def tell_round(self, how, lost):
        answered = sum(event["event"] == "done" for event in self.events)
        ready = [event["ms"] for event in self.events if event["event"] == "ready"]
        print(
            f"round {self.round}: {how}, {answered} answered, "
            f"ready in {ready[0] if ready else '-'} ms, {lost['lost_sectors']} sectors lost",
            flush=True,
        )

    def summary(self):
        """One line with all figures."""

        def listed(counter):
            return ", ".join(f"{name} {number}" for name, number in sorted(counter.items()))

        tally = self.tally
        ready = sorted(tally.ready_ms) or [0]
        return "; ".join(
            [
                f"{self.stack_name}: {tally.cuts.total()} cuts ({listed(tally.cuts)})",
                f"{tally.answered.total()} answered ({listed(tally.answered)})",
                f"{tally.failed.total()} refused ({listed(tally.failed)})",
                f"{tally.lost_sectors} sectors lost, {tally.kept_sectors} kept by chance",
                f"ready in {ready[len(ready) // 2]} ms (median) to {ready[-1]} ms",
                f"{tally.problems.total()} problems ({listed(tally.problems)})",
            ]
        )

    # ---- rounds ----

    def choose_plan(self, cuts):
        if not self.round:
            return "first"
        weights = {name: plan.weight for name, plan in PLANS.items()}
        if cuts <= SHORT_SERIES:
            del weights["long"]
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def wait_for_moment(self, name):
        """Returns the moment in words; None: the guest failed before."""
        plan = PLANS[name]
        ms = self.rng.randrange(plan.least_ms, self.rng.choice(plan.ms)) * self.machine.pace
        answers = ANSWERS + (2 * EXPORT_ANSWERS if self.stack.exports else ())
        event, op = self.rng.choice(plan.events), self.rng.choice(answers)
        if not self.wait_for(event):
            return None
        time.sleep(ms / 1000)
        if name != "answer":
            return f"{ms} ms after {event}"
        self.read_record()
        self.waited = len(self.events)
        self.wait_for_answer(op)
        return f"after {op}"

    def run_round(self, cuts):
        """False: the disk is of no use any more."""
        plan, mode = self.choose_plan(cuts), self.rng.choice(self.stack.modes)
        if plan == "first":
            self.new_disk()
        self.boot(
            clock_is_behind=self.rng.random() < 0.2,
            syncs=self.rng.random() < 0.5 and plan != "answer",
            restarts=plan == "work" and self.rng.random() < 0.7,
            workers=self.rng.choice([1, 4, 4, 8] if plan != "answer" else [1, 2]),
        )
        moment = self.wait_for_moment(plan)
        lost = self.cut(mode)
        self.tally.cuts[plan] += 1
        self.tell_round(f"{plan}, cut {moment} ({mode})", lost)
        return moment and not any(event["event"] in BAD_EVENTS for event in self.events)

    def check_last(self):
        """What the last cut left; then an orderly end."""
        self.boot(works=False)
        self.wait_for("end")
        self.cut("keep")

    # ---- the control ----

    def run_control(self, cuts):
        """Unflushed writes vanish, flushed ones stay, and the checks notice a disk that lies."""
        honest = [self.cut_control(lies=False) for _ in range(cuts)]
        # The kernel may flush by itself now and then: a few more cuts tell.
        while always_kept(honest, "loose") and len(honest) < cuts + MORE_CUTS:
            honest.append(self.cut_control(lies=False))
        for what in always_kept(honest, "loose"):
            self.problem(f"{what}: kept by each of {len(honest)} cuts")
        for what in set(honest[0]) - set(always_kept(honest, "")):
            if what.startswith("flushed"):
                self.problem(f"{what}: lost")
        lying = self.cut_control(lies=True)
        kept = [what for what, is_there in lying.items() if is_there]
        if kept:
            self.problem("the lying disk kept something", kept=kept)
        self.check_that_lies_are_noticed()
        print(
            f"{self.stack_name}: control of {len(honest)} cuts: {honest[-1]}, with a lying disk: {lying}",
            flush=True,
        )
        return not self.tally.problems

    def cut_control(self, lies):
        self.new_disk()
        self.boot(kind="control-write", tag="before", byte=1)
        self.wait_for("written")
        self.cut("keep")
        self.boot(kind="control-write", tag="cut", byte=2, lies=lies)
        self.wait_for("written")
        self.cut("drop")
        self.boot(kind="control-check", tag="cut", byte=2)
        event = self.wait_for("found")
        self.cut("keep")
        return event["found"] if event else {}

    def check_that_lies_are_noticed(self):
        """By the checks of the rounds. Their problems are what is wanted here."""
        before, self.tally = self.tally, Tally(is_quiet=True)
        self.new_disk()
        self.boot(works=False)
        self.wait_for("end")
        self.cut("keep")
        self.boot(lies=True, restarts=False)
        self.wait_for("work")
        time.sleep(2)
        self.cut("drop")
        self.check_last()
        noticed, self.tally = self.tally.problems, before
        print(f"of a lying disk the checks say: {dict(noticed)}", flush=True)
        if not noticed:
            self.problem("the checks do not notice that a disk lies")

    # ---- the series ----

    def run(self, cuts, seconds):
        deadline = time.monotonic() + seconds if seconds else None
        for _ in range(cuts):
            if deadline and time.monotonic() > deadline:
                break
            if not self.run_round(cuts):
                self.new_disk()
        self.check_last()
        print(self.summary(), flush=True)
        return not self.tally.problems
