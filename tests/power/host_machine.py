# SPDX-License-Identifier: Apache-2.0
"""A machine whose power can be cut, on this one: each boot is a mount namespace with a boot id of
its own, and its disk a loop device on the volatile disk.

At the cut the guest is stopped, and then the disk is cut between two requests: the image changes no
more. The processes and mounts of that boot are cleared away; what they still write goes to memory
only.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from machine import HERE, Machine, wait_until

CAP_SYS_RESOURCE = 24

# Thaws and unmounts what is below a path, the uppermost first, as far as it is not in use. Prints
# what is left.
UNMOUNT = """
points() {
    awk -v below="$1" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac
}
for point in $(points "$1"); do fsfreeze --unfreeze "$point"; done 2>/dev/null
[ "$2" = thaw ] || for point in $(points "$1"); do umount "$point"; done 2>/dev/null
points "$1"
"""

# Begins a boot, in a new mount namespace. Its copies of the mounts of others would keep their
# devices in use. By the boot id skycap knows that the machine was started again.
BEGIN = """
awk -v own="$1/" '/ - [^ ]+ .dev.loop/ && index($5, own) != 1 { print $5 }' /proc/self/mountinfo |
    tac | xargs --no-run-if-empty umount --lazy 2>/dev/null
mount -t tmpfs tmpfs "$1/guest" &&
    cat /proc/sys/kernel/random/uuid >"$1/guest/boot_id" &&
    mount --bind "$1/guest/boot_id" /proc/sys/kernel/random/boot_id || exit
shift
exec "$@"
"""


def loop_files():
    found = {}
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            found["/dev/" + path.parts[3]] = path.read_text().strip()
        except OSError:
            pass  # it went meanwhile
    return found


def may_grow_ext4():
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1)


class HostMachine(Machine):
    def __init__(self, work, skycap):
        super().__init__(work)
        self.grows_ext4 = may_grow_ext4()
        self.skycap = shutil.copy(skycap, work)  # a build meanwhile changes nothing
        self.base = str(work / "guest")
        self.fuse = work / "fuse"
        self.fuse.mkdir()
        os.mkdir(self.base)
        flags = ["pkg-config", "--cflags", "--libs", "fuse3"]
        flags = subprocess.run(flags, check=True, capture_output=True, text=True).stdout
        self.program = self.build("volatile-disk-fuse", *flags.split())
        self.guest = self.server = self.loop = self.namespace = None

    def boot(self, task, lies=False):
        self.server = subprocess.Popen(
            [self.program, self.image, self.statistics, "lying" if lies else "honest", self.fuse]
        )
        disk = self.fuse / "disk"
        wait_until(disk.exists, "the volatile disk is not there")
        attach = ["losetup", "--find", "--show", disk]
        attached = subprocess.run(attach, check=True, capture_output=True, text=True)
        self.loop = attached.stdout.strip()
        self.write_task(task, base=self.base, disk=self.loop, skycap=str(self.skycap))
        self.start_guest()

    def start_guest(self):
        words = ["unshare", "--mount", "--propagation", "private"]
        words += ["sh", "-c", BEGIN, "sh", self.work]
        words += [sys.executable, HERE / "guest.py", self.task, self.record]
        paths = {"PYTHONPATH": str(self.work), "PYTHONDONTWRITEBYTECODE": "1"}
        self.guest = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, env=dict(os.environ, **paths)
        )
        own = os.readlink("/proc/self/ns/mnt")
        link = f"/proc/{self.guest.pid}/ns/mnt"
        wait_until(lambda: os.readlink(link) != own, "the guest has no mount namespace")
        self.namespace = os.open(link, os.O_RDONLY)  # it stays as long as this is open

    def has_ended(self):
        return self.guest.poll() is not None

    def cut(self, mode, seed, read_record):
        """Nobody answers between the reading of the record and the cut."""
        self.stop_guest()
        read_record()
        with open(self.fuse / "cut", "wb", buffering=0) as file:
            file.write(f"{mode} {seed}".encode())
        self.clear()
        return self.read_losses()

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
        if self.namespace is not None:
            self.kill_processes()
            wait_until(self.are_mounts_gone, "mounts or loop devices of the guest stay", 60)
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
            if pids:
                self.unmount("thaw")  # who writes to a frozen file system cannot be killed
            return not pids

        wait_until(are_gone, "processes of the guest stay", 60)
        self.guest.wait()

    def unmount(self, how):
        """Returns the mount points that are left."""
        enter = ["nsenter", f"--mount=/proc/{os.getpid()}/fd/{self.namespace}"]
        words = [*enter, "sh", "-c", UNMOUNT, "sh", self.base + "/", how]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()

    def are_mounts_gone(self):
        """Volumes first, then the pool, then the disk: each can go when nothing is left on it."""
        left = self.unmount("unmount")
        below = self.base + "/disk/"
        devices = [
            device
            for device, file in loop_files().items()
            if file.startswith(below) or file == self.loop
        ]
        for device in devices:
            subprocess.run(["losetup", "--detach", device], stderr=subprocess.DEVNULL)
        return not left and not devices

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
