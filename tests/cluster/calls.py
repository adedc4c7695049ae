# SPDX-License-Identifier: Apache-2.0
"""Calls to a node with the program itself: one process for each."""

import json
import re
import subprocess
import time
from dataclasses import dataclass, field

GRACE_SECONDS = 10  # a loaded machine starts a process late


@dataclass
class Answer:
    code: str
    message: str
    reply: dict = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_ok(self):
        return self.code == "OK"


def read_error(text):
    """`skycap: NOT_FOUND: there is no ...`, the first such line."""
    found = re.search(r"^skycap: ([A-Z_]+): (.*)$", text, re.MULTILINE)
    return (found[1], found[2]) if found else ("NO_CODE", text.strip()[-300:])


class Client:
    """Any thread."""

    def __init__(self, skycap, endpoint):
        self.skycap = skycap
        self.endpoint = endpoint

    def execute(self, words, seconds):
        began = time.monotonic()
        try:
            done = subprocess.run(
                [self.skycap, *words],
                capture_output=True,
                text=True,
                timeout=seconds + GRACE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Answer("TOO_LATE", f"it had {seconds} s", {}, time.monotonic() - began)
        took = time.monotonic() - began
        if done.returncode != 0:
            return Answer(*read_error(done.stderr), {}, took)
        try:
            return Answer("OK", "", json.loads(done.stdout or "{}"), took)
        except ValueError:
            return Answer("NO_JSON", done.stdout[:300], {}, took)

    def call(self, method, request, seconds):
        words = ["call", "--compact", "--timeout", str(seconds), self.endpoint, method]
        return self.execute([*words, json.dumps(request)], seconds)

    def run(self, *words, seconds):
        flags = ["--endpoint", self.endpoint, "-o", "json", "--timeout", str(seconds)]
        return self.execute([*words, *flags], seconds)
