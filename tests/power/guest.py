# SPDX-License-Identifier: Apache-2.0
"""Runs in the machine whose power is cut: mounts the disk, starts skycap, checks what the last cut
left, then works until the next one. Each answer is on the record, outside of the machine, right
behind it.

On the host it runs in a mount namespace of its own, in qemu as the first process.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
import threading
import time
import traceback

import control
import verify
import work
from calls import REPOSITORY, Calls
from model import Model
from server import Server

libc = ctypes.CDLL(None, use_errno=True)


class Guest:
    def __init__(self, task, record):
        self.task = task
        self.record = record  # a file descriptor
        self.lock = threading.Lock()
        self.model = Model(task["model"])
        self.base = task["base"]
        self.disk = self.base + "/disk"
        self.data = self.disk + "/skycap"
        for name in ("disk", "run"):
            os.makedirs(f"{self.base}/{name}", exist_ok=True)
        self.repositories = self.disk + "/repositories"
        self.problems = 0
        self.pool_device = None
        self.calls = Calls(self)
        self.server = Server(self)

    def note(self, event, **facts):
        """To the record and to the model, as one."""
        facts.update(event=event, round=self.task["round"])
        line = (json.dumps(facts) + "\n").encode()
        with self.lock:
            while line:
                line = line[os.write(self.record, line) :]
            self.model.apply(facts)

    def problem(self, what, **facts):
        self.problems += 1
        self.note("problem", what=what, **facts)


def mount_disk(guest):
    options = ["-t", guest.task["fs"], "-o", guest.task["mount_options"]]
    done = subprocess.run(
        ["mount", *options, guest.task["disk"], guest.disk], capture_output=True, text=True
    )
    if done.returncode != 0:
        guest.note("mount_failed", message=done.stderr)
    return done.returncode == 0


def attach_pool_device(guest):
    """A part of the disk, as a partition would be. It goes with the cut."""
    start, size = guest.task["pool_start"], guest.task["pool_bytes"]
    place = ["--offset", str(start), "--sizelimit", str(size)]
    attach = ["losetup", "--find", "--show", *place, guest.task["disk"]]
    done = subprocess.run(attach, check=True, capture_output=True, text=True)
    guest.pool_device = done.stdout.strip()


def describe_repository(guest):
    """It is on the disk, too."""
    file = f"{guest.repositories}/{REPOSITORY}.yaml"
    if not os.path.exists(file):
        os.makedirs(guest.repositories, exist_ok=True)
        with open(file, "w") as out:
            out.write(f"url: file://{guest.disk}/repository\n")
        libc.syncfs(os.open(guest.disk, os.O_RDONLY))


def begin(guest):
    """The disk is mounted and the server answers."""
    if not mount_disk(guest):
        return False
    if guest.task["pool_bytes"]:
        attach_pool_device(guest)
    if guest.task["exports"]:
        describe_repository(guest)
    verify.check_store_file(guest)
    return guest.server.start()


def sync_now_and_then(path, seed):
    """Brings the kernel's caches to the disk, so that power is also cut between two steps of which
    only the first is durable."""
    rng = random.Random(seed)
    directory = os.open(path, os.O_RDONLY)
    while True:
        time.sleep(rng.choice([0.002, 0.01, 0.05, 0.2, 0.7]))
        libc.syncfs(directory)


def run_worker(guest, number):
    try:
        work.Worker(guest, number).run()
    except Exception:
        guest.note("crash", trace=traceback.format_exc())


def start_work(guest):
    guest.note("work")
    if guest.task["syncs"]:
        path = guest.data + "/pool" if os.path.isdir(guest.data + "/pool") else guest.disk
        threading.Thread(
            target=sync_now_and_then, args=(path, guest.task["seed"]), daemon=True
        ).start()
    for number in range(guest.task["workers"]):
        threading.Thread(target=run_worker, args=(guest, number), daemon=True).start()


def run_round(guest):
    if not begin(guest):
        return
    if guest.task["exports"] and not guest.model.has_repository and not guest.calls.init():
        guest.problem("the repository cannot be made")
    verify.check_all(guest)
    if guest.task["restarts"]:
        guest.server.stop()
        verify.check_stopped(guest)
        if not guest.server.start():
            return
    guest.note("verified", problems=guest.problems)
    if guest.task["works"]:
        start_work(guest)
    else:
        guest.server.stop()
        verify.check_rebuild(guest)
        verify.unmount_disk(guest)
        guest.note("end")


TASKS = {
    "round": run_round,
    "control-write": lambda guest: control.write(guest, begin),
    "control-check": lambda guest: control.check(guest, begin),
}


def main(task_path, record_path):
    with open(task_path) as file:
        task = json.load(file)
    guest = Guest(task, os.open(record_path, os.O_WRONLY))
    random.seed(task["seed"])
    try:
        guest.note("boot", kernel=os.uname().release)
        TASKS[task["kind"]](guest)
    except Exception:
        guest.note("crash", trace=traceback.format_exc())
    while True:
        time.sleep(60)  # until the cut


if __name__ == "__main__":
    main(*sys.argv[1:])
