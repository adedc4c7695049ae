#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/connection.schema.json and `skycap connection check` to each other.

The program tells all its choices when it is given a wrong one: they are the schema's, and in both directions. And
samples, good and bad, are judged by both alike; of a few the schema cannot tell that they are bad.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77

try:
    import jsonschema
except ImportError:
    print(f"skipped: {sys.executable} has no jsonschema (Debian: python3-jsonschema)")
    sys.exit(SKIPPED)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SKYCAP_BUILD", ROOT / "build")) / "skycap"
SCHEMA = json.loads((ROOT / "docs/connection.schema.json").read_text(encoding="utf-8"))

SOCKET = "unix:///run/csi/hostpath.sock"
LONG = "x" * 64

GOOD = [
    {"driver": "local"},
    {"driver": "local", "options": {}},
    {"driver": "local", "options": {"data": "/srv/fast", "backend": ["dir", "memory"], "pool-size": "10Gi",
                                    "quotas": True, "max-volumes": 100}},
    {"driver": "local", "options": {"backend": "dir"}},
    {"driver": "csi", "options": {"endpoint": SOCKET}},
    {"driver": "csi", "options": {"node-endpoint": SOCKET}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "node-endpoint": "unix:///run/node.sock",
                                  "command": ["/usr/bin/driver", "--verbose", 5],
                                  "environment": {"LEVEL": 3}, "probe-interval": "1m",
                                  "probe-timeout": "500ms", "node-ids": {"worker-1": "i-1"}}},
    {"driver": "csi", "options": {"endpoint": "storage:9000", "tls": {
        "ca": "/ca.crt", "certificate": "/our.crt", "key": "/our.key", "name": "storage"}}},
    {"driver": "csi", "options": {"endpoint": "storage:9000", "insecure": True}},
    {"driver": "oim", "options": {"endpoint": "unix:///run/oim.sock"}},
    {"driver": "oim", "options": {"registry": "dns:///registry:8999", "controller": "host-0", "tls": {
        "ca": "/ca.crt", "certificate": "/our.crt", "key": "/our.key"}}},
    {"driver": "oim", "options": {"endpoint": SOCKET, "emulate": "ceph-csi", "clusters": {"c1": "10.0.0.1:6789"},
                                  "probe-interval": "1m", "probe-timeout": "500ms", "sysfs": "/host/sys"}},
    {"driver": "oim", "options": {"registry": "registry:8999", "insecure": True}},
    {"driver": "local", "default": True, "priority": -1000000, "labels": {"media": "ssd", "n": 1, "e": ""}},
    {"driver": "local", "labels": {LONG[1:]: LONG[1:], "example.com/tier": "a_b-c"}},
    {"driver": "local", "aliases": "old"},
    {"driver": "local", "aliases": ["TrueNAS_2.tank", "a" * 63]},
    {"driver": "local", "aliases": ["old", "0-older"], "parameters": {"fsType": "xfs", "replicas": 3}},
    {"driver": "local", "secrets": "all"},
    {"driver": "local", "secrets": "none", "capabilities": {}},
    {"driver": "local", "capabilities": {"without": "CLONE_VOLUME"}},
    {"driver": "local", "capabilities": {"controller": ["CREATE_DELETE_VOLUME", "EXPAND_VOLUME"], "node": [],
                                         "group": "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT", "expansion": ["ONLINE"],
                                         "services": ["VOLUME_ACCESSIBILITY_CONSTRAINTS"], "without": []}},
    {"driver": "local", "capabilities": {"without": ["EXPAND_VOLUME", "GET_VOLUME_STATS"]}},
    {"driver": "local", "capacity": "unlimited"},
    {"driver": "local", "capacity": "10Ti"},
    {"driver": "local", "capacity": 0},
    {"driver": "local", "capacity": 2**63 - 1},
    {"driver": "local", "topology": [{"example.com/zone": "a", "rack": 7}, {"rack": "b.c_d-e"}]},
    {"driver": "local", "max-calls": 1, "timeout": "1ms"},
    {"driver": "local", "max-calls": 1024, "timeout": "24h"},
]

BAD = [
    [],
    "local",
    {},
    {"driver": None},
    {"driver": "proxy"},
    {"driver": ["local"]},
    {"driver": "local", "proxy": {}},
    {"driver": "local", "Labels": {}},
    {"driver": "local", "options": "x"},
    {"driver": "local", "options": {"socket": "x"}},
    {"driver": "local", "options": {"data": "relative"}},
    {"driver": "local", "options": {"quotas": "perhaps"}},
    {"driver": "local", "options": {"max-volumes": -1}},
    {"driver": "csi"},
    {"driver": "csi", "options": {}},
    {"driver": "csi", "options": {"endpoint": ""}},
    {"driver": "csi", "options": {"endpoint": [SOCKET]}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "command": []}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "command": "driver"}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "environment": {"A": "b"}}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "command": "/x", "environment": {"A=": "b"}}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "probe-interval": 10}},
    {"driver": "csi", "options": {"endpoint": "storage:9000", "tls": {"ca": "/ca.crt"}}},
    {"driver": "csi", "options": {"endpoint": SOCKET, "data": "/x"}},
    {"driver": "oim"},
    {"driver": "oim", "options": {}},
    {"driver": "oim", "options": {"controller": "host-0"}},
    {"driver": "oim", "options": {"endpoint": SOCKET, "registry": SOCKET}},
    {"driver": "oim", "options": {"endpoint": SOCKET, "controller": ""}},
    {"driver": "oim", "options": {"endpoint": SOCKET, "emulate": "nfs"}},
    {"driver": "oim", "options": {"endpoint": SOCKET, "clusters": {"c1": "10.0.0.1:6789"}}},
    {"driver": "oim", "options": {"endpoint": SOCKET, "sysfs": "sys"}},
    {"driver": "oim", "options": {"registry": "registry:8999", "tls": {"ca": "/ca.crt"}}},
    {"driver": "local", "default": "yes"},
    {"driver": "local", "default": 1},
    {"driver": "local", "priority": "high"},
    {"driver": "local", "priority": 1000001},
    {"driver": "local", "priority": 1.5},
    {"driver": "local", "labels": ["ssd"]},
    {"driver": "local", "labels": {"media": "a b"}},
    {"driver": "local", "labels": {"a=b": "c"}},
    {"driver": "local", "labels": {"": "c"}},
    {"driver": "local", "labels": {"media": LONG}},
    {"driver": "local", "labels": {LONG: "ssd"}},
    {"driver": "local", "labels": {"media": None}},
    {"driver": "local", "labels": {"media": ["ssd"]}},
    {"driver": "local", "aliases": ["_old"]},
    {"driver": "local", "aliases": ["../etc"]},
    {"driver": "local", "aliases": ["o ld"]},
    {"driver": "local", "aliases": [""]},
    {"driver": "local", "aliases": ["a" * 64]},
    {"driver": "local", "aliases": ["old", "old"]},
    {"driver": "local", "aliases": [f"a{i}" for i in range(65)]},
    {"driver": "local", "parameters": {"a": {"b": "c"}}},
    {"driver": "local", "parameters": {"": "b"}},
    {"driver": "local", "secrets": "some"},
    {"driver": "local", "secrets": True},
    {"driver": "local", "capabilities": ["CLONE_VOLUME"]},
    {"driver": "local", "capabilities": {"with": "CLONE_VOLUME"}},
    {"driver": "local", "capabilities": {"controller": "STAGE_UNSTAGE_VOLUME"}},
    {"driver": "local", "capabilities": {"node": ["CLONE_VOLUME"]}},
    {"driver": "local", "capabilities": {"services": ["UNKNOWN"]}},
    {"driver": "local", "capabilities": {"expansion": {"ONLINE": True}}},
    {"driver": "local", "capabilities": {"without": "clone_volume"}},
    {"driver": "local", "capabilities": {"without": ["UNKNOWN"]}},
    {"driver": "local", "capacity": "much"},
    {"driver": "local", "capacity": -1},
    {"driver": "local", "capacity": "10 Gi"},
    {"driver": "local", "topology": {"zone": "a"}},
    {"driver": "local", "topology": [{}]},
    {"driver": "local", "topology": ["zone"]},
    {"driver": "local", "topology": [{"zone": "a/b"}]},
    {"driver": "local", "topology": [{"zone": ""}]},
    {"driver": "local", "topology": [{"a/b/c": "d"}]},
    {"driver": "local", "topology": [{"zone-": "a"}]},
    {"driver": "local", "topology": [{"zone": "a"}] * 65},
    {"driver": "local", "max-calls": 0},
    {"driver": "local", "max-calls": 1025},
    {"driver": "local", "max-calls": "many"},
    {"driver": "local", "timeout": "5"},
    {"driver": "local", "timeout": 5},
    {"driver": "local", "timeout": "0s"},
    {"driver": "local", "timeout": "1m30s"},
]

# What only the program can tell, or nobody but it.
BEYOND_THE_SCHEMA = [
    {"driver": "oim", "options": {"registry": "registry:8999"}},
    {"driver": "local", "timeout": "25h"},
    {"driver": "local", "capacity": "8388608Ti"},
    {"driver": "local", "parameters": {"a": "x" * 4096}},
    {"driver": "local", "aliases": ["sample"]},
    {"driver": "local", "parameters": {"a": "\0"}},
]

UNKNOWN = "no-such-word"

# Files with a wrong choice, and where the schema has the right ones.
CHOICES = [
    ({UNKNOWN: 1}, ["properties"]),
    ({"driver": UNKNOWN}, ["properties", "driver", "enum"]),
    ({"driver": "local", "secrets": UNKNOWN}, ["properties", "secrets", "enum"]),
    ({"driver": "local", "capabilities": {UNKNOWN: 1}}, ["properties", "capabilities", "properties"]),
    ({"driver": "local", "capabilities": {"without": UNKNOWN}}, ["$defs", "capability", "enum"]),
    ({"driver": "local", "capabilities": {"controller": UNKNOWN}}, ["$defs", "controller", "enum"]),
    ({"driver": "local", "capabilities": {"node": UNKNOWN}}, ["$defs", "node", "enum"]),
    ({"driver": "local", "capabilities": {"group": UNKNOWN}}, ["$defs", "group", "enum"]),
    ({"driver": "local", "capabilities": {"services": UNKNOWN}}, ["$defs", "service", "enum"]),
    ({"driver": "local", "capabilities": {"expansion": UNKNOWN}}, ["$defs", "expansionKind", "enum"]),
    ({"driver": "local", "options": {UNKNOWN: 1}}, ["$defs", "local", "properties"]),
    ({"driver": "csi", "options": {UNKNOWN: 1}}, ["$defs", "csi", "properties"]),
    ({"driver": "csi", "options": {"tls": {UNKNOWN: 1}}}, ["$defs", "csi", "properties", "tls", "properties"]),
    ({"driver": "oim", "options": {UNKNOWN: 1}}, ["$defs", "oim", "properties"]),
    ({"driver": "oim", "options": {"endpoint": SOCKET, "emulate": UNKNOWN}}, ["$defs", "oim", "properties", "emulate", "enum"]),
    ({"driver": "oim", "options": {"endpoint": SOCKET, "tls": {UNKNOWN: 1}}}, ["$defs", "oim", "properties", "tls", "properties"]),
]


def judge(document):
    """What the program says of the document, which is JSON and so YAML: None, or what is wrong."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "sample.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        done = subprocess.run([PROGRAM, "connection", "check", "-o", "json", path], timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
    verdict = json.loads(done.stdout)
    if verdict["ok"] != (done.returncode == 0):
        raise RuntimeError(f"exit code {done.returncode} for {verdict}")
    return None if verdict["ok"] else verdict["message"]


def choices_told(document):
    """The words behind "there are:" or "none of:" in what the program says."""
    message = judge(document) or ""
    head, found, words = message.partition(" there are: ")
    if not found:
        head, found, words = message.partition(" is none of: ")
    if not found or UNKNOWN not in head:
        raise RuntimeError(f"no choices are told for {json.dumps(document)}: {message!r}")
    return set(words.split(", "))


def check_choices():
    wrong = []
    for document, place in CHOICES:
        part = SCHEMA
        for key in place:
            part = part[key]
        told, written = choices_told(document), set(part)
        if told != written:
            wrong.append(f"{'/'.join(place)}: only the program has {sorted(told - written)}, "
                         f"only the schema {sorted(written - told)}")
    return wrong


def check_sample(validator, document, program_takes, schema_takes):
    wrong, shown = [], json.dumps(document)[:120]
    message, is_valid = judge(document), validator.is_valid(document)
    if (message is None) != program_takes:
        wrong.append(f"the program says of {shown}: {message or 'ok'}")
    if is_valid != schema_takes:
        wrong.append(f"the schema {'takes' if is_valid else 'refuses'} {shown}")
    return wrong


def main():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    wrong = check_choices()
    for samples, program_takes, schema_takes in ((GOOD, True, True), (BAD, False, False),
                                                 (BEYOND_THE_SCHEMA, False, True)):
        for document in samples:
            wrong += check_sample(validator, document, program_takes, schema_takes)
    for line in wrong:
        print(f"FAILED: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
