# SPDX-License-Identifier: Apache-2.0
"""A machine whose power can be cut, as a virtual one: a Debian kernel in qemu, on the volatile disk
over NBD. The cut is SIGKILL for qemu.

Without KVM a round takes one to two minutes. ACCEL="-enable-kvm -cpu host" where KVM boots Debian's
kernels.
"""

import os
import shlex
import subprocess

from machine import HERE, Machine, build_disk, wait_until

ACCEL = os.environ.get("ACCEL", "-accel tcg,thread=multi,tb-size=512 -cpu max")
KERNEL_WORDS = "console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable mitigations=off"
TASK_BYTES = 4 << 20


class QemuMachine(Machine):
    slowness = 20
    pace = 8

    def __init__(self, work, skycap, kernel):
        """`kernel`: a directory with an unpacked Debian kernel package."""
        super().__init__(work)
        self.program = build_disk(work, "volatile-disk-nbd")
        self.socket = work / "disk.sock"
        self.qemu = self.server = None
        subprocess.run([HERE / "make-guest", work, skycap, kernel], check=True)

    def boot(self, task, lies=False):
        self.write_task(task, base="/machine", disk="/dev/vda", skycap="/usr/bin/skycap")
        os.truncate(self.task, TASK_BYTES)  # the guest reads it from a disk, up to the first NUL
        self.server = subprocess.Popen(
            [self.program, self.image, self.statistics, "lying" if lies else "honest", self.socket],
            stdin=subprocess.PIPE,
        )
        wait_until(self.socket.exists, "the volatile disk is not there")
        # As with an empty battery.
        clock = ["-rtc", "base=2020-01-01T00:00:00"] if task["clock_is_behind"] else []
        self.qemu = subprocess.Popen(self.command() + clock, stdin=subprocess.DEVNULL)

    def command(self):
        words = ["nice", "-n", "10", "qemu-system-x86_64", *shlex.split(ACCEL)]
        words += "-smp 2 -m 1200 -nodefaults -no-user-config -display none".split()
        words += ["-kernel", self.work / "vmlinux", "-initrd", self.work / "initrd"]
        words += ["-append", KERNEL_WORDS, "-serial", f"file:{self.work}/console"]
        words += ["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"]
        words += ["-chardev", f"file,id=record,path={self.record}"]
        words += ["-device", "virtserialport,chardev=record,name=record"]
        disk = (
            f"driver=nbd,server.type=unix,server.path={self.socket},cache.direct=on,discard=unmap"
        )
        words += ["-blockdev", disk + ",node-name=disk"]
        words += ["-device", "virtio-blk-pci,drive=disk,write-cache=on"]
        words += ["-blockdev", f"driver=file,filename={self.task},read-only=on,node-name=task"]
        words += ["-device", "virtio-blk-pci,drive=task"]
        return words

    def has_ended(self):
        return self.qemu.poll() is not None

    def cut(self, mode, seed, read_record):
        self.qemu.kill()
        self.qemu.wait()
        self.server.communicate(f"{mode} {seed}\n".encode())
        self.server = None
        self.socket.unlink()
        read_record()
        return self.read_losses()

    def clear(self):
        for process in (self.qemu, self.server):
            if process:
                process.kill()
                process.wait()
