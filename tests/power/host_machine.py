# SPDX-License-Identifier: Apache-2.0
"""A machine whose power can be cut, on this one: each boot is a mount namespace with a boot id of
its own, and its disk a loop device on the volatile disk.

At the cut the guest is stopped, and then the disk is cut between two requests: the image changes no
more. The processes and mounts of that boot are cleared away; what they still write goes to memory
only.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CLEAR_TRIES = 400
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-O2"]

# Undoes the mounts below a path, the uppermost first.
UNMOUNT = """
awk -v below="$1" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac |
    while read -r point; do
        fsfreeze --unfreeze "$point" 2>/dev/null
        umount "$point" 2>/dev/null || umount --lazy "$point"
    done
"""

# A new namespace has copies of all mounts. Those of others would keep their devices in use.
LEAVE_OTHERS = """
awk -v own="$1/" '/ - [^ ]+ .dev.loop/ && index($5, own) != 1 { print $5 }' /proc/self/mountinfo |
    tac | xargs --no-run-if-empty umount --lazy 2>/dev/null
mount -t tmpfs tmpfs "$1/guest"
shift
exec "$@"
"""


def build_disk(work):
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True
    ).stdout.split()
    program = work / "volatile-disk-fuse"
    subprocess.run(
        [
            "gcc",
            *FLAGS,
            "-o",
            program,
            HERE / "volatile-disk-fuse.c",
            HERE / "volatile_disk.c",
            *flags,
        ],
        check=True,
    )
    return program


def loop_files():
    found = {}
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            found["/dev/" + path.parts[3]] = path.read_text().strip()
        except OSError:
            pass  # it went meanwhile
    return found


def wait_until(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.002)


class HostMachine:
    grows_ext4 = False  # see __init__

    def __init__(self, work, skycap):
        self.work = work
        self.skycap = shutil.copy(skycap, work)  # a build meanwhile changes nothing
        self.base = str(work / "guest")
        self.fuse = work / "fuse"
        self.image = work / "disk.img"
        self.record = work / "record"
        self.program = build_disk(work)
        self.fuse.mkdir()
        os.mkdir(self.base)
        self.guest = self.server = self.loop = self.namespace = None
        with open("/proc/self/status") as file:
            bits = next(line for line in file if line.startswith("CapEff:"))
        self.grows_ext4 = bool(int(bits.split()[1], 16) >> 24 & 1)  # CAP_SYS_RESOURCE

    def boot(self, task, lies=False):
        self.record.write_bytes(b"")
        self.server = subprocess.Popen(
            [
                self.program,
                self.image,
                self.work / "statistics",
                "lying" if lies else "honest",
                self.fuse,
            ]
        )
        disk = self.fuse / "disk"
        wait_until(disk.exists, "the volatile disk is not there")
        self.loop = subprocess.run(
            ["losetup", "--find", "--show", disk], check=True, capture_output=True, text=True
        ).stdout.strip()
        (self.work / "task").write_text(
            json.dumps(dict(task, base=self.base, disk=self.loop, skycap=str(self.skycap)))
        )
        self.guest = subprocess.Popen(
            [
                "nice",
                "-n",
                "5",
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                LEAVE_OTHERS,
                "sh",
                self.work,
                sys.executable,
                HERE / "guest.py",
                self.work / "task",
                self.record,
            ],
            stdin=subprocess.DEVNULL,
            env=dict(os.environ, PYTHONPATH=str(self.work), PYTHONDONTWRITEBYTECODE="1"),
        )
        own = os.readlink("/proc/self/ns/mnt")
        link = f"/proc/{self.guest.pid}/ns/mnt"
        wait_until(lambda: os.readlink(link) != own, "the guest has no mount namespace")
        self.namespace = os.open(link, os.O_RDONLY)  # it stays as long as this is open

    def has_ended(self):
        return self.guest.poll() is not None

    def cut(self, mode, seed, read_record):
        """`read_record` is called when the guest is stopped and before the disk is cut: what is on
        the record then was answered before the cut, and nobody answers between the two. Returns
        what was lost."""
        self.stop_guest()
        read_record()
        with open(self.fuse / "cut", "wb", buffering=0) as file:
            file.write(f"{mode} {seed}".encode())
        self.clear()
        return json.loads((self.work / "statistics").read_text().splitlines()[-1])

    def stop_guest(self):
        self.guest.send_signal(signal.SIGSTOP)
        tasks = f"/proc/{self.guest.pid}/task"

        def is_stopped():
            states = [
                pathlib.Path(f"{tasks}/{task}/stat").read_text().rsplit(")", 1)[1].split()[0]
                for task in os.listdir(tasks)
            ]
            return all(state in "TtZ" for state in states)

        wait_until(is_stopped, "the guest does not stop")

    def clear(self):
        """Kills and unmounts whatever is left of a boot. Harmless if there is nothing."""
        if self.namespace is not None:
            self.kill_processes()
            self.unmount("/pods/")
            self.detach_images()
            self.unmount("/disk")
            os.close(self.namespace)
            self.namespace = None
        if self.loop:
            self.detach_disk()
        if self.server:
            self.unmount_fuse()

    def processes(self):
        inside = os.readlink(f"/proc/self/fd/{self.namespace}")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/ns/mnt") == inside:
                    yield int(pid)
            except OSError:
                pass  # it ended meanwhile

    def kill_processes(self):
        def are_gone():
            pids = list(self.processes())
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.guest.poll()
            return not pids

        wait_until(are_gone, "processes of the guest stay", 60)
        self.guest.wait()

    def unmount(self, below):
        subprocess.run(
            [
                "nsenter",
                f"--mount=/proc/{os.getpid()}/fd/{self.namespace}",
                "sh",
                "-c",
                UNMOUNT,
                "sh",
                self.base + below,
            ],
            stderr=subprocess.DEVNULL,
        )

    def detach_images(self):
        """Loop devices of volumes; that of a pool goes with its mount."""

        def are_gone():
            devices = [
                device
                for device, file in loop_files().items()
                if file.startswith(self.base + "/disk/") and not file.endswith("/pool.img")
            ]
            for device in devices:
                subprocess.run(["losetup", "--detach", device], stderr=subprocess.DEVNULL)
            if devices:
                self.unmount("/pods/")
            return not devices

        wait_until(are_gone, "loop devices of volumes stay")

    def detach_disk(self):
        def is_gone():
            if loop_files().get(self.loop) != str(self.fuse / "disk"):
                return True
            subprocess.run(["losetup", "--detach", self.loop], stderr=subprocess.DEVNULL)
            return False

        wait_until(is_gone, "the loop device of the disk stays", 60)
        self.loop = None

    def unmount_fuse(self):
        """Another process may hold a copy of the mount; it harms nobody."""
        if subprocess.run(["umount", self.fuse], stderr=subprocess.DEVNULL).returncode != 0:
            subprocess.run(["umount", "--lazy", self.fuse])
        self.server.kill()
        self.server.wait()
        self.server = None
