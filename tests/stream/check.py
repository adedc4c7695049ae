#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Facts about streams on real file systems: check.py FACT DIRECTORY...

Each FACT is a function below. The directories are mounts with noatime; "source" must be btrfs. SEED
in the environment chooses other random trees.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import trees

TOOL = os.environ["SKYCAP_BUILD"] + "/tests/stream/stream-tool"
SEED = int(os.environ.get("SEED", "1"))
DIED = 9


def fail(text):
    sys.exit(f"FAILED: {text}")


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, **options)


def btrfs(*words):
    run("btrfs", "-q", *words, stdout=subprocess.DEVNULL)


class Transfer:
    """A stream in a file, and how to make it."""

    def __init__(self, *producer):
        self.producer = [str(word) for word in producer]
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.stream = self.directory / "stream"
        self.end = self.directory / "end"
        self.state = self.directory / "state"
        # The producer's options come behind the file for its end.
        with open(self.stream, "wb") as file:
            run(TOOL, *self.producer, self.end, stdout=file)

    def offset(self):
        return int(self.state.read_text().split()[0]) if self.state.exists() else 0

    def size(self):
        return self.stream.stat().st_size

    def receive(self, target, commit_bytes=0, stop_at=None, stream=None, end=None):
        """Continues at the saved position. Returns the number of commits, or None if it has died."""
        offset = self.offset()
        stop = [] if stop_at is None else [stop_at - offset]
        with open(stream or self.stream, "rb") as file:
            file.seek(offset)
            done = subprocess.run([TOOL, "receive", str(target), str(self.state), str(end or self.end),
                                   str(commit_bytes)] + [str(word) for word in stop],
                                  stdin=file, stdout=subprocess.PIPE, text=True)
        if done.returncode == DIED:
            return None
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, "receive")
        return int(done.stdout)

    def forget(self):
        self.state.unlink(missing_ok=True)

    def cuts(self):
        """The ends of its commands."""
        with open(self.stream, "rb") as file:
            lines = subprocess.run([TOOL, "cuts"], stdin=file, stdout=subprocess.PIPE, check=True, text=True)
        return [int(line.split()[0]) for line in lines.stdout.splitlines()]

    def check_continued(self):
        """A producer that continues at the saved position sends exactly the rest."""
        rest = subprocess.run([TOOL, *self.producer, self.end, self.state], stdout=subprocess.PIPE, check=True)
        if rest.stdout != self.stream.read_bytes()[self.offset():]:
            fail(f"{self.producer} continued at {self.offset()} sends something else")


def expect_same(what, left, right, with_holes=False):
    lines = trees.differences(trees.describe(left, with_holes), trees.describe(right, with_holes))
    if lines:
        fail(f"{what}: {left} and {right} differ:\n" + "\n".join(lines))


def snapshot(source, target, writable=False):
    btrfs("subvolume", "snapshot", *([] if writable else ["-r"]), source, target)


def new_volume(parent, name, seed, changes):
    """A subvolume with a random tree."""
    path = os.path.join(parent, name)
    btrfs("subvolume", "create", path)
    tree = trees.RandomTree(path, seed, can_clone=True)
    tree.change(changes)
    return path, tree


# ---- facts ----

def trees_of_all_kinds(source, btrfs_target, ext4, xfs):
    volume, tree = new_volume(source, "kinds", SEED, 400)
    os.setxattr(volume, "user.root", b"value")
    os.chmod(volume, 0o1751)
    os.utime(volume, ns=(123456789, 987654321))
    snapshot(volume, volume + "-1")
    tree.change(300)
    snapshot(volume, volume + "-2")
    full = Transfer("btrfs", volume + "-1", "-")
    later = Transfer("btrfs", volume + "-2", volume + "-1")
    for place in btrfs_target, ext4, xfs:
        target = os.path.join(place, "kinds")
        btrfs("subvolume", "create", target) if place == btrfs_target else os.mkdir(target)
        full.receive(target)
        # xfs allocates more than was written.
        expect_same(f"the full stream to {place}", volume + "-1", target, with_holes=place != xfs)
        if place == btrfs_target:
            snapshot(target, target + "-1", writable=True)
        later.receive(target)
        expect_same(f"the later stream to {place}", volume + "-2", target)
        full.forget()
        later.forget()
        print(f"ok kernel streams to {place}")
    for origin, place in (ext4, xfs), (xfs, btrfs_target), (btrfs_target, ext4):
        tree = os.path.join(origin, "kinds")
        target = os.path.join(place, "walked")
        os.mkdir(target)
        Transfer("walk", tree).receive(target)
        expect_same(f"a walk of {origin} to {place}", tree, target, with_holes=place != xfs)
        print(f"ok walked streams from {origin} to {place}")
    walk = Transfer("walk", os.path.join(xfs, "kinds"))
    os.mkdir(os.path.join(btrfs_target, "others"))
    run("btrfs", "-q", "receive", "-f", walk.stream, os.path.join(btrfs_target, "others"))
    expect_same("btrfs receive", os.path.join(xfs, "kinds"), os.path.join(btrfs_target, "others/tree"))
    print("ok btrfs receive applies our stream")


def damage_is_found(source, target):
    volume, _ = new_volume(source, "damaged", SEED, 60)
    snapshot(volume, volume + "-1")
    for transfer in Transfer("btrfs", volume + "-1", "-"), Transfer("walk", volume):
        stream = transfer.stream.read_bytes()
        chance = random.Random(SEED)
        for number in range(60):
            bytes_ = bytearray(stream)
            bytes_[chance.randrange(len(bytes_))] ^= 1 << chance.randrange(8)
            check_refused(transfer, bytes_, os.path.join(target, f"damaged{number}"))
        cuts = transfer.cuts()
        for number in range(20):
            i = chance.randrange(1, len(cuts) - 1)
            without = stream[:cuts[i - 1]] + stream[cuts[i]:]
            check_refused(transfer, without, os.path.join(target, f"missing{number}"))
        run("rm", "-rf", *pathlib.Path(target).glob("*"))
    print("ok each of 160 damaged streams is refused")


def check_refused(transfer, stream, target):
    path = transfer.directory / "damaged"
    path.write_bytes(stream)
    os.mkdir(target)
    transfer.forget()
    with open(path, "rb") as file:
        result = subprocess.run([TOOL, "receive", target, transfer.state, transfer.end, "0"], stdin=file,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if result.returncode != 1 or not result.stderr.startswith("FAILED: "):
        fail(f"a damaged stream gave {result.returncode} {result.stderr}")


def every_cut(source):
    """Cut behind every command: of a full stream, of one with a parent, and of a walk."""
    volume, tree = new_volume(source, "cut", SEED, 120)
    snapshot(volume, volume + "-1")
    tree.change(100)
    snapshot(volume, volume + "-2")
    empty = os.path.join(source, "cut-empty")
    btrfs("subvolume", "create", empty)
    count = 0
    for base, wanted, transfer in (
            (empty, volume + "-1", Transfer("btrfs", volume + "-1", "-")),
            (volume + "-1", volume + "-2", Transfer("btrfs", volume + "-2", volume + "-1")),
            (empty, volume + "-2", Transfer("walk", volume + "-2"))):
        expected = trees.describe(wanted)
        for cut in transfer.cuts():
            target = os.path.join(source, "cut-target")
            snapshot(base, target, writable=True)
            transfer.forget()
            if transfer.receive(target, stop_at=cut, end="-") is not None:
                fail("the receiver did not die")
            transfer.receive(target)
            if lines := trees.differences(expected, trees.describe(target)):
                fail(f"{transfer.producer} cut at {cut}, kept in {transfer.directory}:\n" + "\n".join(lines))
            btrfs("subvolume", "delete", target)
            count += 1
    print(f"ok {count} cuts")


def random_rounds(source, btrfs_target, ext4, rounds):
    """Snapshot after snapshot of a tree that changes goes to two targets, cut somewhere each time."""
    volume, tree = new_volume(source, "rounds", SEED, 30)
    targets = [os.path.join(btrfs_target, "rounds"), os.path.join(ext4, "rounds")]
    for target in targets:
        os.mkdir(target)
    parent = None
    chance = random.Random(SEED)
    commits = 0
    for number in range(int(rounds)):
        current = f"{volume}-{number}"
        tree.change(chance.randrange(1, 40))
        snapshot(volume, current)
        transfer = Transfer("btrfs", current, parent or "-")
        for target in targets:
            transfer.forget()
            transfer.receive(target, 20_000, stop_at=chance.randrange(transfer.size()) + 1, end="-")
            if number % 10 == 0:
                transfer.check_continued()
            commits += transfer.receive(target)
            expect_same(f"round {number}", current, target)
        if parent:
            btrfs("subvolume", "delete", parent)
        parent = current
        run("rm", "-rf", transfer.directory)
    print(f"ok {rounds} rounds, {commits / int(rounds) / len(targets):.1f} commits each behind the cut")


def kills(source, target):
    """The receiver is killed 20 times; a new one continues with what the producer sends again."""
    path = os.path.join(source, "killed")
    btrfs("subvolume", "create", path)
    for number in range(2000):
        os.makedirs(f"{path}/d{number % 37}", exist_ok=True)
        pathlib.Path(f"{path}/d{number % 37}/f{number}").write_bytes(os.urandom(100 + number * 7 % 9000))
    for number in range(6):
        pathlib.Path(f"{path}/large{number}").write_bytes(os.urandom(24 << 20))
    snapshot(path, path + "-1")
    for kind in ("btrfs", path + "-1", "-"), ("walk", path + "-1"):
        transfer = Transfer(*kind)
        sent = kill_often(transfer, os.path.join(target, kind[0]))
        more = sent / transfer.size() - 1
        if more > 0.05:
            fail(f"{kind[0]}: {more:.1%} more were sent")
        print(f"ok {kind[0]}: 20 kills, {more:.1%} more were sent")


def kill_often(transfer, target):
    """Returns how many bytes the receivers have got."""
    os.mkdir(target)
    chance = random.Random(SEED)
    cuts = sorted(chance.randrange(transfer.size()) for _ in range(20))
    sent = 0
    for cut in cuts:
        offset = transfer.offset()
        if cut > offset:
            feed_and_kill(transfer, target, cut - offset)
            sent += cut - offset
    transfer.check_continued()
    sent += transfer.size() - transfer.offset()
    transfer.receive(target, 1 << 18)
    expect_same("after the kills", transfer.producer[1], target)
    return sent


def feed_and_kill(transfer, target, size):
    """The producer's bytes go through a pipe, so that the receiver has read what it was given."""
    receiver = subprocess.Popen([TOOL, "receive", target, transfer.state, transfer.end, str(1 << 18)],
                                stdin=subprocess.PIPE)
    state = ["", transfer.state][transfer.state.exists()]
    producer = subprocess.Popen([str(word) for word in (TOOL, *transfer.producer, transfer.end, state)],
                                stdout=subprocess.PIPE)
    while size:
        part = producer.stdout.read(min(size, 1 << 16))
        receiver.stdin.write(part)
        size -= len(part)
    receiver.stdin.flush()
    time.sleep(0.02)
    receiver.send_signal(signal.SIGKILL)
    receiver.wait()
    producer.kill()
    producer.wait()


def images(source, ext4, xfs):
    """A full image, then only what has changed, with holes as holes."""
    size = 64 << 20
    first, second = (os.path.join(source, name) for name in ("image-1", "image-2"))
    chance = random.Random(SEED)
    with open(first, "wb") as file:
        file.truncate(size + 512)
        for _ in range(60):
            file.seek(chance.randrange(size // 4096) * 4096)
            file.write(chance.randbytes(chance.choice([4096, 65536, 400_000])))
    run("cp", "--reflink=always", first, second)
    ranges = change_image(second, size, chance)
    for place in source, ext4, xfs:
        target = os.path.join(place, "image-target")
        os.mkdir(target)
        pathlib.Path(target, "image").touch()
        full = Transfer("image", first, "-")
        full.receive(target, stop_at=full.size() // 2, commit_bytes=1 << 20, end="-")
        full.check_continued()
        full.receive(target)
        expect_same_image(first, os.path.join(target, "image"))
        later = Transfer("image", second, ranges)
        if later.size() > full.size() / 3:
            fail(f"the changes have {later.size()} bytes, all {full.size()}")
        later.receive(target)
        expect_same_image(second, os.path.join(target, "image"))
        print(f"ok images to {place}")


def change_image(path, size, chance):
    """Returns a file with the ranges that were changed: some are holes now."""
    with open(path, "r+b") as file, tempfile.NamedTemporaryFile("w", delete=False) as ranges:
        for number in range(20):
            offset = chance.randrange(size // 8192) * 4096 + number % 2 * size // 2
            file.seek(offset)
            if number % 3:
                file.write(chance.randbytes(4096))
            else:
                run("fallocate", "--punch-hole", "--offset", offset, "--length", 40960, path)
            file.flush()
            ranges.write(f"{offset} {4096 if number % 3 else 40960}\n")
    os.sync()
    return ranges.name


def expect_same_image(left, right):
    size = os.stat(left).st_size
    if (trees.read_sum(left) != trees.read_sum(right)
            or trees.find_data(left, size) != trees.find_data(right, size)):
        fail(f"the images {left} and {right} differ")


def many_files(source, target):
    path = os.path.join(source, "many")
    btrfs("subvolume", "create", path)
    for number in range(50_000):
        if number % 500 == 0:
            os.mkdir(f"{path}/d{number // 500}")
        pathlib.Path(f"{path}/d{number // 500}/f{number}").write_bytes(b"%d\n" % number)
    snapshot(path, path + "-1")
    for kind in ("btrfs", path + "-1", "-"), ("walk", path + "-1"):
        transfer = Transfer(*kind)
        tree = os.path.join(target, kind[0])
        os.mkdir(tree)
        commits = transfer.receive(tree)
        expect_same("50,000 files", path + "-1", tree)
        print(f"ok {kind[0]}: 50,000 files with {commits} commits")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
