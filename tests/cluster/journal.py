# SPDX-License-Identifier: Apache-2.0
"""Records every call and fault, and judges the codes.

A code is true if it can be so in this situation: UNAVAILABLE and DEADLINE_EXCEEDED only while
something is broken; ABORTED also while something else happens to the same volume; NOT_FOUND only of
what may be gone. INTERNAL, UNKNOWN and the like are never true here.
"""

import collections
import threading
import time

TROUBLE = frozenset(["UNAVAILABLE", "DEADLINE_EXCEEDED"])
LATE_SECONDS = 3  # beyond the deadline of a call, on a loaded machine


class Journal:
    """Any thread."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "a", buffering=1)
        self.began = time.monotonic()
        self.round = 0
        self.is_calm = False  # nothing is broken: TROUBLE is not true
        self.problems = []
        self.codes = collections.Counter()
        self.longest = 0.0

    def write(self, *words):
        now = time.monotonic() - self.began
        with self.lock:
            self.file.write(f"{now:9.3f} {self.round:4} " + " ".join(map(str, words)) + "\n")

    def problem(self, text):
        self.write("PROBLEM", text)
        with self.lock:
            self.problems.append(f"round {self.round}: {text}")

    def judge(self, what, node, answer, seconds, allowed=()):
        """Records the answer. `allowed`: codes that are true, besides OK and those of faults."""
        self.write("call", node, what, answer.code, f"{answer.seconds:.2f}s", answer.message)
        with self.lock:
            self.codes[answer.code] += 1
            self.longest = max(self.longest, answer.seconds)
        if answer.code == "TOO_LATE" or answer.seconds > seconds + LATE_SECONDS:
            self.problem(f"{what} at {node} took {answer.seconds:.1f} s, it had {seconds}")
        is_true = answer.is_ok or answer.code in allowed
        if not is_true and not (answer.code in TROUBLE and not self.is_calm):
            self.problem(f"{what} at {node}: {answer.code} is not true: {answer.message}")
        return answer

    def take_codes(self):
        with self.lock:
            codes, longest = self.codes, self.longest
            self.codes, self.longest = collections.Counter(), 0.0
        return codes, longest
