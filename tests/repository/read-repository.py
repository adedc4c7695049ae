#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a repository in a directory by docs/repository.md alone: tests/repository/read-repository.py DIRECTORY KEY-FILE SNAPSHOT

The record is taken for a row of chunk ids, as tests/repository/chunks.h makes it. Prints the SHA-256 of all chunks in this order.
"""

import base64
import hashlib
import hmac
import pathlib
import struct
import subprocess
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ENTRY = struct.Struct("<32sIII")
PACK = struct.Struct("<32s32sII")


def derive(master, salt, info):
    return HKDF(hashes.SHA256(), 32, salt or None, info).derive(master)


def open_piece(master, header, offset, sealed):
    kind = header[8]
    key = derive(master, header[16:48], b"skycap object" + bytes([kind]))
    extra = struct.pack("<BQI", kind, offset, len(sealed) - 16)
    return AESGCM(key).decrypt(struct.pack("<QI", offset, 0), sealed, extra)


def read_object(root, master, kind, name):
    data = (root / kind / name).read_bytes()
    assert data[:8] == b"SKYCAPR1" and data[8] == int(kind, 16) and data[9] == 1
    assert hashlib.sha256(data).hexdigest() == name
    return open_piece(master, data[:48], 48, data[48:])


def read_index(root, master):
    """Chunk id: (pack, offset, stored size, size)."""
    chunks = {}
    for path in (root / "02").iterdir():
        body, at = read_object(root, master, "02", path.name), 0
        while at < len(body):
            name, _salt, _size, count = PACK.unpack_from(body, at)
            at += PACK.size
            for _ in range(count):
                chunk, offset, stored, raw = ENTRY.unpack_from(body, at)
                chunks[chunk] = (name.hex(), offset, stored, raw)
                at += ENTRY.size
    return chunks


def read_chunk(root, master, place):
    name, offset, stored, raw = place
    pack = (root / "01" / name).read_bytes()
    data = open_piece(master, pack[:48], offset, pack[offset:offset + stored])
    if len(data) < raw:
        data = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
    assert len(data) == raw
    return data


def main():
    root, key_file, snapshot = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    word, text = key_file.read_text().split()
    assert word == "skycap-repository-key-1"
    master = base64.b64decode(text)
    id_key = derive(master, b"", b"skycap chunk ids\0")
    chunks, record, total = read_index(root, master), read_object(root, master, "03", snapshot), hashlib.sha256()
    for at in range(0, len(record), 32):
        chunk = record[at:at + 32]
        data = read_chunk(root, master, chunks[chunk])
        assert hmac.new(id_key, data, "sha256").digest() == chunk
        total.update(data)
    print(total.hexdigest())


if __name__ == "__main__":
    main()
