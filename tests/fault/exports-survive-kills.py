#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed at random moments of exports, imports, prunes and copies. Each resumes or is reported failed, none is
reported complete that is not: what is imported and copied has the checksum of what was there. In the end the repository has
no damage, and when all snapshots are removed from it, prune leaves no pack.

In each second round of a kind the operation is watched, and the kill comes soon after it has begun: some of these must have
hit it, and it went on. copies-go-on-after-a-kill.sh shows that a copy does not begin again.

STORM_ROUNDS=100 tests/run ... kills it as often (16 times otherwise); STORM_SEED repeats a run's choices.
"""
# time-limit: 1800

import collections
import hashlib
import json
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

SIZE = 96 << 20
CHANGE = 18 << 20
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKYCAP = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")) / "skycap"
SLOWER = int(os.environ.get("TIME_FACTOR", "1"))
ROUNDS = int(os.environ.get("STORM_ROUNDS", "16"))
SEED = int(os.environ.get("STORM_SEED", random.randrange(1 << 32)))
RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
OPERATIONS = {"export": "export-snapshot", "import": "import-snapshot", "copy": "copy-volume", "prune": "prune-repository"}


class Failed(Exception):
    pass


class Daemon:
    def __init__(self, folder):
        self.folder = folder
        self.address = f"unix:{folder}/csi.sock"
        (folder / "repositories").mkdir()
        (folder / "repositories/main.yaml").write_text(f"url: file://{folder}/repository\n")
        self.process = None

    def start(self):
        log = open(self.folder / "log", "a")
        self.process = subprocess.Popen(
            [SKYCAP, "serve", "--endpoint", self.address, "--data", self.folder / "data", "--backend", "dir",
             "--repositories", self.folder / "repositories"], stdout=log, stderr=log)
        deadline = time.monotonic() + 20 * SLOWER
        while subprocess.run([SKYCAP, "probe", "--endpoint", self.address], capture_output=True).returncode:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise Failed("the daemon does not start")
            time.sleep(0.02)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            if self.process.wait(60) != 0:
                raise Failed("the daemon ended badly")

    def command(self, *words):
        return [SKYCAP, *words, "--endpoint", self.address]

    def run(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, *words):
        return json.loads(self.run(*words, "-o", "json"))

    def image(self, volume_id):
        handle = volume_id.split("/")[-1]
        found = [path for path in (self.folder / "data").rglob("*")
                 if handle in str(path) and path.is_file() and path.stat().st_size == SIZE]
        if len(found) != 1:
            raise Failed(f"the image of {volume_id}: {found}")
        return found[0]

    def state(self, operation):
        done = subprocess.run(self.command("op", "show", operation, "-o", "json"), capture_output=True, text=True)
        return json.loads(done.stdout)["state"] if done.returncode == 0 else "NONE"

    def watch(self):
        return subprocess.Popen(
            [SKYCAP, "call", "--compact", self.address, "skycap.v1.Operations/Watch", "{}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def wait(self, operation):
        deadline = time.monotonic() + 60 * SLOWER
        while (state := self.state(operation)) == RUNNING:
            if time.monotonic() > deadline:
                raise Failed(f"{operation} does not end")
            time.sleep(0.05)
        return state


def sum_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def can_share(folder):
    return subprocess.run(["cp", "--reflink=always", folder / "log", folder / "log2"], capture_output=True).returncode == 0


class Storm:
    def __init__(self, daemon):
        self.daemon = daemon
        self.dice = random.Random(SEED)
        self.sums = {}  # of what is exported: name -> sum
        self.snapshot_sums = {}
        self.figures = collections.Counter()
        self.durations = {}  # of each kind, without a kill
        self.before = set()  # operations before the one that is watched
        self.hits = collections.Counter()  # kills in the midst of an operation of each kind
        self.number = 0
        daemon.run("repository", "init", "main")
        daemon.run("volume", "create", "source", "--block", "--size", str(SIZE))
        self.source = daemon.ask("volume", "show", "source")["volume"]["volumeId"]
        self.image = daemon.image(self.source)

    def change(self):
        with open(self.image, "r+b") as file:
            file.seek(self.dice.randrange(SIZE - CHANGE))
            file.write(self.dice.randbytes(CHANGE))
            file.flush()
            os.fsync(file.fileno())

    # Each begins something and says how to see its end.

    def begin_export(self):
        self.change()
        name = f"s{self.number}"
        self.daemon.run("snapshot", "create", "source", name)
        self.snapshot_sums[name] = sum_of(self.image)
        return ["snapshot", "export", name]

    def end_export(self, words, is_killed):
        name = words[-1]
        shown = self.daemon.ask("snapshot", "show", name).get("exports", [])
        running = [one["operation"] for one in shown if "operation" in one]
        state = self.daemon.wait(running[0]) if running else SUCCEEDED if shown else "NONE"
        found = [one for one in self.daemon.ask("repository", "snapshots", "main").get("exports", []) if one["name"] == name]
        if state == SUCCEEDED and len(found) != 1:
            raise Failed(f"{name} is reported as exported, and the repository has {found}")
        if is_killed:
            self.figures["export " + ("went on" if running else "had ended" if shown else "had not begun")] += 1
        if state not in (SUCCEEDED, "NONE"):
            self.figures["export " + state] += 1
        self.daemon.run(*words)  # again: finds it, or does it now
        self.sums[name] = self.snapshot_sums[name]

    def begin_import(self):
        return ["snapshot", "import", self.dice.choice(sorted(self.sums)), "--name", f"v{self.number}"]

    def begin_copy(self):
        return ["volume", "create", f"v{self.number}", "--block", "--from-snapshot", self.dice.choice(sorted(self.snapshot_sums))]

    def end_volume(self, kind, words, is_killed, name, wanted):
        shown = subprocess.run(self.daemon.command("volume", "show", name, "-o", "json"), capture_output=True, text=True)
        volume = json.loads(shown.stdout)["volume"]["volumeId"] if shown.returncode == 0 else None
        if is_killed:
            running = volume and self.daemon.state(volume) == RUNNING
            self.figures[f"{kind} " + ("went on" if running else "had ended" if volume else "had not begun")] += 1
        state = self.daemon.wait(volume) if volume else "NONE"
        if state == SUCCEEDED and sum_of(self.daemon.image(volume)) != wanted:
            raise Failed(f"{' '.join(words)} is reported as complete, and is not")
        if state not in (SUCCEEDED, "NONE"):
            self.figures[f"{kind} {state}"] += 1
        self.daemon.run(*words)
        volume = self.daemon.ask("volume", "show", name)["volume"]["volumeId"]
        if self.daemon.wait(volume) not in (SUCCEEDED, "NONE") or sum_of(self.daemon.image(volume)) != wanted:
            raise Failed(f"{' '.join(words)}: the contents differ")
        self.daemon.run("volume", "delete", name)

    def end_import(self, words, is_killed):
        self.end_volume("import", words, is_killed, words[4], self.sums[words[2]])

    def end_copy(self, words, is_killed):
        self.end_volume("copy", words, is_killed, words[2], self.snapshot_sums[words[5]])

    def begin_prune(self):
        if len(self.sums) > 1:
            self.remove(self.dice.choice(sorted(self.sums)))
        return ["snapshot", "prune"]

    def remove(self, name):
        for one in self.daemon.ask("repository", "snapshots", "main")["exports"]:
            if one["name"] == name:
                self.daemon.run("repository", "remove", "main", one["id"])
        self.daemon.run("snapshot", "delete", name)
        del self.sums[name], self.snapshot_sums[name]

    def is_pruning(self):
        listed = self.daemon.ask("op", "list").get("operations", [])
        return any(one["kind"] == OPERATIONS["prune"] and one["state"] == RUNNING for one in listed)

    def end_prune(self, words, is_killed):
        self.figures["prune killed"] += is_killed
        deadline = time.monotonic() + 10 * SLOWER
        while self.is_pruning():  # it fails soon after the start
            if time.monotonic() > deadline:
                raise Failed("a prune that was killed goes on")
            time.sleep(0.05)
        self.daemon.run(*words)
        self.daemon.run("snapshot", "verify")

    def wait_until_begun(self, watch, kind):
        """Returns the id of the operation, or None if there is none: on some file systems a copy takes no time."""
        for line in watch.stdout:
            one = json.loads(line)
            if one["kind"] == OPERATIONS[kind] and one["state"] == RUNNING:
                return one["id"]
            if one["kind"] == OPERATIONS[kind] and one["id"] not in self.before:
                return None
        return None

    def kill_in_the_midst(self, kind, words):
        """What is under way then is told by the operations of the next daemon."""
        self.before = {one["id"] for one in self.daemon.ask("op", "list").get("operations", [])}
        watch = self.daemon.watch()
        client = subprocess.Popen(self.daemon.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        threading.Thread(target=lambda: (client.wait(), watch.kill())).start()  # there may be no operation
        operation = self.wait_until_begun(watch, kind)
        time.sleep(self.dice.uniform(0, 0.2) * self.durations[kind])
        self.daemon.kill()
        for process in (client, watch):
            process.kill()
            process.wait()
        watch.stdout.close()
        self.daemon.start()
        # A prune has failed at the next start, the others go on.
        state = self.daemon.state(operation) if operation else "NONE"
        was_hit = state == "FAILED" if kind == "prune" else state == RUNNING or (operation and self.is_resumed(operation))
        self.hits[kind] += bool(was_hit)

    def is_resumed(self, operation):
        lines = (self.daemon.folder / "log").read_text().splitlines()
        last = max(number for number, line in enumerate(lines) if " ready version=" in line)
        before = max((number for number, line in enumerate(lines[:last]) if " ready version=" in line), default=0)
        return any("resuming" in line and operation.split("/")[-1] in line for line in lines[before + 1:])

    def kill_at_random(self, kind, words):
        client = subprocess.Popen(self.daemon.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.dice.uniform(0, 1.1) * self.durations[kind])
        self.daemon.kill()
        client.wait()
        self.daemon.start()

    def round(self, kind, kill):
        self.number += 1
        words = getattr(self, f"begin_{kind}")()
        begin = time.monotonic()
        if kill:
            kill(kind, words)
        else:
            subprocess.run(self.daemon.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.durations[kind] = time.monotonic() - begin
        getattr(self, f"end_{kind}")(words, bool(kill))

    def check_hits(self, kinds):
        """Of each kind, some kills hit it in the midst. A copy that shares its data is no operation."""
        for kind in kinds:
            if not self.hits[kind] and not (kind == "copy" and can_share(self.daemon.folder)):
                raise Failed(f"no kill hit a {kind} in the midst: {dict(self.figures)} {dict(self.hits)}")

    def finish(self):
        self.daemon.run("snapshot", "verify", "--data")
        for name, wanted in sorted(self.sums.items()):
            self.number += 1
            words = ["snapshot", "import", name, "--name", f"v{self.number}"]
            self.end_volume("last import", words, False, words[4], wanted)
        for name in sorted(self.sums):
            self.remove(name)
        self.daemon.run("snapshot", "prune")
        self.daemon.run("snapshot", "prune")
        left = [path.name for kind in ("01", "02", "03", "05") for path in (self.daemon.folder / "repository" / kind).iterdir()]
        if left:
            raise Failed(f"prune leaves {left}")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("SKYCAP_TMP")))
    daemon = Daemon(folder)
    kinds = ("export", "import", "copy", "prune")
    try:
        daemon.start()
        storm = Storm(daemon)
        for kind in ("export", "export", *kinds):
            storm.round(kind, None)
        for number in range(ROUNDS):
            in_the_midst = number // len(kinds) % 2 == 0
            storm.round(kinds[number % len(kinds)], storm.kill_in_the_midst if in_the_midst else storm.kill_at_random)
        storm.check_hits(kinds)
        storm.finish()
        daemon.end()
        print("in the midst:", ", ".join(f"{kind} {storm.hits[kind]}" for kind in kinds))
        print(f"{ROUNDS} kills:", ", ".join(f"{what} {count}" for what, count in sorted(storm.figures.items())))
    except Failed as error:
        print(f"FAILED with STORM_SEED={SEED}: {error}")
        print("".join((folder / "log").read_text().splitlines(True)[-30:]))
        return 1
    finally:
        if daemon.process and daemon.process.poll() is None:
            daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
