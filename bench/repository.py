# SPDX-License-Identifier: Apache-2.0
"""The repository part: exports and imports beside restic and borg. As root.

All of them encrypt and compress with their defaults (borg: zstd, because lz4 stores more) and begin with the contents in memory. We export
snapshots of a volume; restic and borg read the same files where the volume is published, and for the image a file with
the same contents. CPU is that of the program, with us of the server and the command."""

import contextlib
import os
import pathlib
import random
import resource
import shutil
import subprocess
import tempfile
import time

from harness import NotMeasured, Process, print_table

IMAGE_BYTES = int(os.environ.get("SKYCAP_BENCH_IMAGE_MIB", 2048)) << 20
FILES = int(os.environ.get("SKYCAP_BENCH_FILES", 200_000))
FILE_BYTES = 4096
SECONDS = 1800
OURS, RESTIC, BORG = "skycap", "restic", "borg"
STEPS = "first", "no change", "1 % changed", "restore"


class Figures:
    """What one run of a program took."""

    def __init__(self, seconds, cpu, memory_mib):
        self.seconds, self.cpu, self.memory_mib = seconds, cpu, memory_mib


def run_measured(words, environment=None, directory=None):
    """Runs a program, and tells what it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    try:
        child = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}, cwd=directory)
    except FileNotFoundError:
        raise NotMeasured(f"{words[0]} is not installed") from None
    complaint = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise NotMeasured(f"{words[0]}: {complaint.decode(errors='replace')[-300:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figures(time.monotonic() - start, cpu, usage.ru_maxrss / 1024)


# ---- contents ----


def half_compressible(dice, size):
    """Half random bytes, half text."""
    words = b"".join(b"%d volumes and snapshots, " % dice.randrange(1000) for _ in range(size // 50 + 1))
    return dice.randbytes(size // 2) + words[:size - size // 2]


def fill_image(path, mode):
    dice = random.Random(1)
    with open(path, mode) as file:
        for _ in range(IMAGE_BYTES >> 24):
            file.write(half_compressible(dice, 1 << 24))
        file.flush()
        os.fsync(file.fileno())


def change_image(path):
    dice = random.Random(2)
    with open(path, "r+b") as file:
        for _ in range(max(1, IMAGE_BYTES // 100 >> 20)):
            file.seek(dice.randrange(IMAGE_BYTES >> 20) << 20)
            file.write(dice.randbytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())


def fill_tree(path):
    dice = random.Random(3)
    for number in range(FILES):
        directory = path / f"d{number // 500}"
        if number % 500 == 0:
            directory.mkdir()
        (directory / f"f{number}").write_bytes(half_compressible(dice, dice.randrange(2 * FILE_BYTES)))


def change_tree(path):
    dice = random.Random(4)
    for number in dice.sample(range(FILES), max(1, FILES // 100)):
        (path / f"d{number // 500}" / f"f{number}").write_bytes(dice.randbytes(FILE_BYTES))


# ---- programs ----


def undo_mounts(directory):
    """What a server leaves mounted when it ends."""
    points = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed([point for point in points if point.startswith(f"{directory}/")]):
        subprocess.run(["umount", point], check=False)


class Skycap:
    """A server with a pool and a repository, and a volume that is published."""

    def __init__(self, build, directory, stack):
        self.program, self.directory, self.stack = build / "skycap", directory, stack
        self.socket = directory / "csi.sock"
        stack.callback(undo_mounts, directory)
        (directory / "repositories").mkdir()
        (directory / "repositories" / "main.yaml").write_text(f"url: file://{directory}/ours\n")
        self.server = stack.enter_context(Process("skycap", [
            self.program, "serve", "--endpoint", f"unix://{self.socket}", "--data", directory / "data", "--backend", "btrfs",
            "--pool-size", "24Gi", "--repositories", directory / "repositories", "--log-level", "warn"], directory / "log"))
        self.server.wait_for_socket(self.socket)
        self.call("repository", "init", "main")

    def call(self, *words):
        before = self.server.cpu_seconds()
        figures = run_measured([self.program, *words, "--endpoint", f"unix://{self.socket}"])
        figures.cpu += self.server.cpu_seconds() - before
        figures.memory_mib = self.server.memory_mib("VmHWM")
        return figures

    def make(self, *flags):
        path = self.directory / "volume"
        self.call("volume", "create", "volume", *flags, "--publish", path)
        self.stack.callback(self.call, "volume", "unpublish", "volume", path)
        return path

    def export(self, step):
        self.call("snapshot", "create", "volume", step)
        return self.call("snapshot", "export", step)

    def restore(self, step):
        return self.call("snapshot", "import", step, "--name", "restored")

    def compare(self, source):
        """What was restored with what was exported last."""
        path = self.directory / "restored"
        self.call("volume", "publish", "restored", path)
        command = ["cmp", source, path] if path.is_block_device() else ["diff", "--recursive", source, path]
        is_equal = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
        self.call("volume", "unpublish", "restored", path)
        if not is_equal:
            raise NotMeasured("what was restored differs from what was exported")

    def stored(self):
        return size_of(self.directory / "ours")


class Restic:
    def __init__(self, directory):
        self.directory = directory
        self.environment = {"RESTIC_PASSWORD": "bench", "RESTIC_REPOSITORY": str(directory / "restic"),
                            "RESTIC_CACHE_DIR": str(directory / "restic-cache")}
        run_measured(["restic", "init"], self.environment)

    def export(self, path):
        return run_measured(["restic", "backup", "."], self.environment, path)

    def restore(self):
        return run_measured(["restic", "restore", "latest", "--target", self.directory / "restic-back"], self.environment)

    def stored(self):
        return size_of(self.directory / "restic")


class Borg:
    def __init__(self, directory):
        self.directory, self.count = directory, 0
        self.environment = {"BORG_PASSPHRASE": "bench", "BORG_REPO": str(directory / "borg"),
                            "BORG_BASE_DIR": str(directory / "borg-base"), "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes"}
        run_measured(["borg", "init", "--encryption", "repokey-blake2"], self.environment)

    def export(self, path):
        self.count += 1
        return run_measured(["borg", "create", "--compression", "zstd,3", f"::a{self.count}", "."], self.environment, path)

    def restore(self):
        target = self.directory / "borg-back"
        target.mkdir()
        return run_measured(["borg", "extract", f"::a{self.count}"], self.environment, target)

    def stored(self):
        return size_of(self.directory / "borg")


def size_of(directory):
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


# ---- measuring ----


def measure_all(programs, ours, source, peer_source, change):
    """Of each program, the figures of every step; and what is stored in the end."""
    found = {name: {} for name in (OURS, *programs)}
    for step in STEPS[:3]:
        if step == STEPS[2]:
            for path in {source, peer_source}:
                change(path)
        found[OURS][step] = ours.export(step.replace(" ", "-").replace("%", "p"))
        for name, program in programs.items():
            found[name][step] = program.export(peer_source.parent if peer_source.is_file() else peer_source)
    found[OURS][STEPS[3]] = ours.restore("1-p-changed")
    ours.compare(source)
    for name, program in programs.items():
        found[name][STEPS[3]] = program.restore()
        shutil.rmtree(program.directory / f"{name}-back")
    return found


def best(found, step):
    return min(found[name][step].seconds for name in found if name != OURS)


def judge(title, found, stored, report, later_times):
    rows = [[step, *(f"{found[name][step].seconds:.2f} s" for name in found),
             f"{best(found, step) / found[OURS][step].seconds:.1f}"] for step in STEPS]
    rows += [[f"{step}, CPU", *(f"{found[name][step].cpu:.2f} s" for name in found), ""] for step in STEPS]
    rows.append(["peak memory", *(f"{max(f.memory_mib for f in found[name].values()):.0f} MiB" for name in found), ""])
    rows.append(["stored", *(f"{stored[name] / 2**20:,.0f} MiB" for name in found), ""])
    print_table(title, ["", *found, "times"], rows)
    for step, least in (STEPS[0], 1), (STEPS[2], later_times), (STEPS[3], 1):
        ratio = best(found, step) / found[OURS][step].seconds
        report.bar(ratio >= least, f"{title}, {step}: {least} times as fast as the best of them", f"{ratio:.1f} times")
    report.bar(found[OURS][STEPS[1]].seconds < 1, f"{title}: an export without a change in less than a second",
               f"{found[OURS][STEPS[1]].seconds:.2f} s")
    memory = max(figures.memory_mib for figures in found[OURS].values())
    report.bar(memory < 64, f"{title}: less than 64 MiB of memory", f"{memory:.0f} MiB")
    least_stored, least_cpu = (min(values[name] for name in values if name != OURS)
                               for values in (stored, {name: found[name][STEPS[0]].cpu for name in found}))
    report.bar(stored[OURS] <= least_stored, f"{title}: stores no more than the best of them",
               f"{stored[OURS] / least_stored:.2f} times")
    ratio = found[OURS][STEPS[0]].cpu / least_cpu
    report.bar(ratio <= 1, f"{title}, {STEPS[0]}: no more CPU than the best of them", f"{ratio:.2f} times")


def measure_image(build, directory, stack, report):
    ours = Skycap(build, directory, stack)
    source = ours.make("--block", "--size", f"{IMAGE_BYTES}")
    (directory / "image").mkdir()
    peer_source = directory / "image" / "file"
    fill_image(source, "r+b")
    fill_image(peer_source, "wb")
    programs = {RESTIC: Restic(directory), BORG: Borg(directory)}
    found = measure_all(programs, ours, source, peer_source, change_image)
    stored = {OURS: ours.stored(), **{name: program.stored() for name, program in programs.items()}}
    judge(f"image of {IMAGE_BYTES >> 20:,} MiB", found, stored, report, 20)


def measure_tree(build, directory, stack, report):
    ours = Skycap(build, directory, stack)
    source = ours.make()
    fill_tree(source)
    os.sync()
    programs = {RESTIC: Restic(directory), BORG: Borg(directory)}
    found = measure_all(programs, ours, source, source, change_tree)
    stored = {OURS: ours.stored(), **{name: program.stored() for name, program in programs.items()}}
    judge(f"{FILES:,} small files", found, stored, report, 5)


def measure(_root, build, arguments, report):
    if os.geteuid() != 0:
        report.miss_figure("repository", "needs root: file systems are mounted")
        return
    for title, action in ("image", measure_image), ("tree", measure_tree):
        with (report.topic(f"repository, {title}"),
              tempfile.TemporaryDirectory(prefix="skycap-repository-", dir=arguments.directory) as name,
              contextlib.ExitStack() as stack):
            action(build, pathlib.Path(name), stack, report)
