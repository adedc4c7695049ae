#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that README.md, docs/getting-started.md and docs/running.md show work, and print what is shown.

Each document is followed in a new folder with a server by `make run`. A command is a line of an indented block that
begins with `# ` (the prompt of root); the lines below it, up to the next command or the end of the block, are its output.
A command without output may print anything. A command in a sentence, such as `cat run/token`, has to succeed at that place;
of a `make`, only what it would run is asked. A block that begins with "Skycap" is the greeting of `make run`. Where the text says "Press Ctrl-C in the first terminal", the server is
stopped so. Ids, times and the folder are not compared. With --print, the blocks are
printed with the real output, to be put into the document. With --record FILE, the session of the README is drawn
there: docs/session.svg is made so, and has to have the commands of the README.
"""
# time-limit: 180

import contextlib
import html
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import session_picture  # pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")).resolve()
DOCUMENTS = {"README.md": "## Quick start", "docs/getting-started.md": "# Getting started",
             "docs/running.md": "## Rehearsal"}
PROMPT = "    # "
STOP, CTRL_C = "Press Ctrl-C in the first terminal", "Ctrl-C"
GREETING, GREETING_BEGINS, GREETING_ENDS = "the greeting of make run", "    Skycap ", "Try next"
INLINE = re.compile(r"`((?:cat|make|build/skycap) [^`]+)`")
SESSION = ROOT / "docs/session.svg"
SECONDS = 60 * int(os.environ.get("TIME_FACTOR") or 1)
END = "--end-of-command--"
NODE = "worker"  # the name of the machine in the documents


def read_commands(document, heading):
    """Pairs of a command and its output, of the section with that heading."""
    found, is_inside = [], False
    level = heading.split()[0]
    for line in (ROOT / document).read_text().splitlines():
        if line.startswith("#"):
            is_inside = line == heading or (is_inside and len(line.split()[0]) > len(level))
        elif is_inside and line.startswith(PROMPT):
            command = re.sub(r"\s{2,}# .*", "", line.removeprefix(PROMPT))
            found.append((command, []))
        elif is_inside and line.startswith(GREETING_BEGINS):
            found.append((GREETING, [line[4:]]))
        elif is_inside and line.startswith("    ") and found and found[-1][1] is not None:
            found[-1][1].append(line[4:].rstrip())
        elif is_inside and line.startswith(STOP):
            found.append((CTRL_C, []))
            found.append((None, None))
        elif line.strip():  # prose: what is indented below it belongs to no command
            if is_inside:
                found += [(re.sub("^make ", "make --dry-run ", command), []) for command in INLINE.findall(line)]
            found.append((None, None))
    return [pair for pair in found if pair[0]]


def plain(text, folder):
    """What differs from run to run is made equal."""
    text = text.replace(str(folder), "FOLDER").replace("/root/skycap", "FOLDER")
    text = re.sub(r"\blocal([/.])[0-9a-z]{23}\b", r"local\1ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"[0-9.]+ [KMGT]iB free", "SIZE free", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text))
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def mounts():
    return {line.split()[4] for line in open("/proc/self/mountinfo")}


class Folder:
    """A new checkout, as far as `make run` needs it, with a server."""

    def __init__(self, path):
        self.path, self.mounts_before = path, mounts()
        for name in ("Makefile", "tools"):
            (path / name).symlink_to(ROOT / name)
        (path / "build").symlink_to(BUILD)
        self.log = open(path / "log", "w+")
        self.server = subprocess.Popen(["make", "run", "DEPS=no", "CC=gcc"], cwd=path, stdout=self.log, stderr=self.log,
                                       start_new_session=True)
        self.shell = subprocess.Popen(["bash"], cwd=path, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True)

    def wait_until_ready(self):
        deadline = time.monotonic() + SECONDS
        probe = [BUILD / "skycap", "probe", "--endpoint", f"unix:{self.path}/run/csi.sock"]
        while subprocess.run(probe, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline or self.server.poll() is not None:
                self.log.seek(0)
                sys.exit(f"FAILED: `make run` does not serve:\n{self.log.read()}")
            time.sleep(0.1)

    def run(self, command):
        """In the one shell that a reader would use: the exit code, and what it printed."""
        self.shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s %d\\n' {END} $?\n")
        self.shell.stdin.flush()
        watchdog = threading.Timer(SECONDS, os.killpg, (self.shell.pid, signal.SIGKILL))
        watchdog.start()
        output = ""
        for line in self.shell.stdout:
            if line.startswith(END):
                watchdog.cancel()
                return int(line.split()[1]), output.removesuffix("\n")
            output += line
        watchdog.cancel()
        return -1, output

    def press_ctrl_c(self):
        """The terminal interrupts make and the server. Make has no exit code then that would tell of the server, but its log does."""
        os.killpg(self.server.pid, signal.SIGINT)
        self.server.wait(SECONDS)
        self.log.seek(0)
        text = self.log.read()
        return (0, "") if "ending signal=Interrupt" in text else (1, text)

    def greeting(self):
        self.log.seek(0)
        text = self.log.read()
        at = text.find(GREETING_BEGINS.strip())
        return (1, text) if at < 0 else (0, text[at:].partition(GREETING_ENDS)[0])

    def perform(self, command):
        own = {"make run": lambda: (0, ""), CTRL_C: self.press_ctrl_c, GREETING: self.greeting}
        return own.get(command, lambda: self.run(command))()

    def end(self):
        """Whatever a document has left published goes, too, and so do servers that it has started."""
        self.shell.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGTERM)
        self.shell.wait(SECONDS)
        pool = str(self.path / "run/data/pool")
        for mount in sorted(mounts() - self.mounts_before - {pool}, reverse=True):
            subprocess.run(["umount", mount], check=False)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.server.pid, signal.SIGTERM)
        self.server.wait(SECONDS)
        if pool in mounts():
            subprocess.run(["umount", pool], check=True)


def follow(document, heading, prints, session):
    """How many commands did what is shown, and how many did not. The commands are added to the session."""
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="skycap-newcomer-", dir="/var/tmp") as name:
        folder = Folder(pathlib.Path(name))
        try:
            folder.wait_until_ready()
            for command, shown in read_commands(document, heading):
                begun = time.monotonic()
                code, output = folder.perform(command)
                session.append((command, output.replace(name, "/root/skycap"), time.monotonic() - begun))
                if prints:
                    print(PROMPT + command, *("    " + line for line in output.splitlines()), sep="\n")
                expected, got = plain("\n".join(shown), folder.path), plain(output, folder.path)
                if code or (expected and expected != got):
                    print(f"FAILED {document}: {command}: exit code {code}\n  shown: {expected}\n  got:   {got}")
                    failed += 1
                else:
                    print(f"ok {document}: {command}")
                    passed += 1
        finally:
            folder.end()
    return passed, failed


def is_of_terminal(command):
    """Whether somebody who follows the README types it, in the terminal that is not that of the server."""
    return command not in ("make run", CTRL_C, GREETING) and not command.startswith("make --dry-run ")


def check_session():
    """The commands of the session in the README's picture are those of the README."""
    wanted = [command for command, _ in read_commands("README.md", DOCUMENTS["README.md"]) if is_of_terminal(command)]
    shown = [html.unescape(text) for text in re.findall('class="command">(.*?)</tspan>', SESSION.read_text())]
    if shown == wanted:
        return True
    print(f"FAILED docs/session.svg: make it anew with --record docs/session.svg\n  README: {wanted}\n  shown:  {shown}")
    return False


def take_names():
    """A machine of the documents' name, whose /mnt is the test's own."""
    if os.geteuid() != 0:
        print("needs root: volumes are published")
        sys.exit(77)
    if "SKYCAP_NEWCOMER" not in os.environ:
        os.environ["SKYCAP_NEWCOMER"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--uts", "--propagation", "private", sys.executable, *sys.argv])
    subprocess.run(["hostname", NODE], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True)


def main():
    take_names()
    prints = "--print" in sys.argv
    if "--record" in sys.argv:
        session = []
        follow("README.md", DOCUMENTS["README.md"], False, session)
        shown = [step for step in session if is_of_terminal(step[0])]
        pathlib.Path(sys.argv[sys.argv.index("--record") + 1]).write_text(session_picture.draw(shown, "skycap"))
        return
    counts = [follow(document, heading, prints, []) for document, heading in DOCUMENTS.items()]
    if any(sum(count) < 4 for count in counts):
        print("FAILED: a document has no commands")
        sys.exit(1)
    counts.append((1, 0) if check_session() else (0, 1))
    passed, failed = map(sum, zip(*counts))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


main()
