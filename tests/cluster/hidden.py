# SPDX-License-Identifier: Apache-2.0
"""Hidden snapshots, which no call tells: those that transfers take and that two nodes keep as a
common base, and copies of other nodes' snapshots. They are read from the store of a node."""

import sqlite3
from dataclasses import dataclass

NAME, STATE, SOURCE, PURPOSE, PEER, KEPT = 2, 3, 4, 16, 17, 18  # fields of SnapshotRecord
BASE, REPLICA = 1, 2  # purposes


@dataclass
class Hidden:
    volume: str
    purpose: int
    peer: str
    is_kept: bool
    is_ready: bool


def read_number(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return number, at


def read_fields(data):
    """The fields of a message of protobuf: numbers and bytes, the last one of each."""
    fields, at = {}, 0
    while at < len(data):
        key, at = read_number(data, at)
        if key & 7 == 0:
            fields[key >> 3], at = read_number(data, at)
        elif key & 7 == 2:
            size, at = read_number(data, at)
            fields[key >> 3] = data[at : at + size]
            at += size
        else:
            at += 8 if key & 7 == 1 else 4
    return fields


def read_hidden(state):
    """By handle. `state`: the file of the store, whose server may run."""
    store = sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=5)
    try:
        rows = store.execute(
            "SELECT key, value FROM entry WHERE key >= 'snapshot/' AND key < 'snapshot0'"
        ).fetchall()
    finally:
        store.close()
    hidden = {}
    for key, value in rows:
        fields = read_fields(value)
        if fields.get(PURPOSE):
            hidden[key.partition("/")[2]] = Hidden(
                fields.get(SOURCE, b"").decode(),
                fields[PURPOSE],
                fields.get(PEER, b"").decode(),
                bool(fields.get(KEPT)),
                not fields.get(STATE),
            )
    return hidden
