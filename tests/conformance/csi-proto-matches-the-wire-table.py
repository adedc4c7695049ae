#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds proto/csi.proto to the facts about the wire in tests/data/csi_wire.tsv, in both directions.

Both sides are brought into the form of the table's rows and compared: every row has its match in
the proto, and nothing stands in the proto that has no row. `--self-test` shows that the check can
fail: it breaks copies of csi.proto, one fact at a time, and demands that each break is found.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

SKIPPED = 77

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    print(f"skipped: {sys.executable} has no google.protobuf (Debian: python3-protobuf)")
    sys.exit(SKIPPED)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/data/csi_wire.tsv"
PROTO = ROOT / "proto/csi.proto"
PACKAGE = "csi.v1"
NONE = "-"


class Key(NamedTuple):
    """What a row is about; the rest of the row is what it says about it."""

    kind: str
    scope: str
    name: str


class Facts(NamedTuple):
    number: str = NONE
    type: str = NONE
    label: str = NONE
    place: str = NONE  # the oneof of a field, the path of an rpc
    flags: str = NONE


# ---- The table ----


def read_table(path):
    """The rows by key. Rows with the column removed_in count like any other: we keep them."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, scope, name, *facts = line.split("\t")[:8]
        key = Key(kind, scope, name)
        if key in rows:
            raise ValueError(f"{path}: two rows for {' '.join(key)}")
        rows[key] = Facts(*facts)
    return rows


# ---- The proto ----


def compile_proto(path):
    """The descriptor of one .proto file, with the options it defines itself readable by name."""
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory, "csi.desc")
        subprocess.run(
            ["protoc", f"--proto_path={path.parent}", "--include_imports",
             f"--descriptor_set_out={output}", path.name],
            check=True)
        data = output.read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    factory.GetMessages([path.name])  # makes the extensions known to the classes of this pool
    file_set = factory.GetPrototype(pool.FindMessageTypeByName("google.protobuf.FileDescriptorSet"))
    return next(file for file in file_set.FromString(data).file if file.name == path.name)


def flags_of(options):
    """All options that are set, as the table spells them; one it has no word for keeps its name."""
    flags = []
    for field, value in options.ListFields():
        name = field.full_name
        if name.startswith(f"{PACKAGE}.alpha_"):
            name = "alpha"
        elif name == f"{PACKAGE}.csi_secret":
            name = "csi_secret"
        flags.append(name if value is True else f"{name}={value}")
    return ",".join(sorted(flags)) or NONE


def local_name(full_name):
    """".csi.v1.Volume" is "Volume"; a name of another package keeps it."""
    return full_name.removeprefix(f".{PACKAGE}.").removeprefix(".")


def type_name(field):
    name = field.DESCRIPTOR.enum_types_by_name["Type"].values_by_number[field.type].name
    word = name.removeprefix("TYPE_").lower()
    return f"{word} {local_name(field.type_name)}" if field.type_name else word


def field_facts(field, message=None):
    """The facts of a field, or of an extension, which has no message round it."""
    kind, label = type_name(field), "singular"
    if field.label == field.LABEL_REPEATED:
        label = "repeated"
    if message:
        for nested in message.nested_type:
            is_ours = field.type_name.endswith(f".{message.name}.{nested.name}")
            if is_ours and nested.options.map_entry:
                kind = f"map<{','.join(type_name(part) for part in nested.field)}>"
                label = "map"
    oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else NONE
    return Facts(str(field.number), kind, label, oneof, flags_of(field.options))


def rows_of_extensions(extensions):
    for extension in extensions:
        key = Key("extension", local_name(extension.extendee), extension.name)
        yield key, field_facts(extension)


def rows_of_enum(enum, scope):
    name = scope + enum.name
    yield Key("enum", name, NONE), Facts(flags=flags_of(enum.options))
    for value in enum.value:
        yield (Key("enumval", name, value.name),
               Facts(str(value.number), "enum", flags=flags_of(value.options)))
    for span in enum.reserved_range:
        yield (Key("reserved", name, f"{span.start}..{span.end}"),
               Facts(f"{span.start}-{span.end}", "reserved"))


def rows_of_message(message, scope=""):
    name = scope + message.name
    yield Key("message", name, NONE), Facts(flags=flags_of(message.options))
    for field in message.field:
        yield Key("field", name, field.name), field_facts(field, message)
    for span in message.reserved_range:
        for number in range(span.start, span.end):
            yield Key("reserved", name, str(number)), Facts(str(number), "reserved")
    for enum in message.enum_type:
        yield from rows_of_enum(enum, f"{name}.")
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from rows_of_message(nested, f"{name}.")
    yield from rows_of_extensions(message.extension)


def rows_of_service(service, package):
    yield Key("service", service.name, NONE), Facts(flags=flags_of(service.options))
    kinds = {(False, False): "unary", (True, False): "client-stream",
             (False, True): "server-stream", (True, True): "bidi-stream"}
    for method in service.method:
        yield (Key("rpc", service.name, method.name),
               Facts(NONE, f"{local_name(method.input_type)} -> {local_name(method.output_type)}",
                     kinds[method.client_streaming, method.server_streaming],
                     f"/{package}.{service.name}/{method.name}", flags_of(method.options)))


def rows_of_proto(file):
    rows = {}
    for message in file.message_type:
        rows.update(rows_of_message(message))
    for enum in file.enum_type:
        rows.update(rows_of_enum(enum, ""))
    for service in file.service:
        rows.update(rows_of_service(service, file.package))
    rows.update(rows_of_extensions(file.extension))
    return rows


# ---- The comparison ----


def numbers_of(facts):
    first, _, last = facts.number.partition("-")
    return range(int(first), int(last or first) + 1)


def is_kept(key, facts, proto):
    """Is each number of a reserved row carried by a field or value of that message or enum?

    Whether it is the right one is said by the row of that field or value itself.
    """
    carried = {int(other.number) for where, other in proto.items()
               if where.scope == key.scope and where.kind in ("field", "enumval")}
    return carried.issuperset(numbers_of(facts))


def compare_row(key, expected, proto):
    found = proto.get(key)
    if found is None:
        if key.kind == "reserved" and is_kept(key, expected, proto):
            return
        yield f"missing: {' '.join(key)}"
        return
    for what, want, have in zip(Facts._fields, expected, found):
        if want != have:
            yield f"differs: {' '.join(key)}: {what} is {have}, the table says {want}"


def compare(table, proto):
    mismatches = []
    for key, expected in table.items():
        mismatches += compare_row(key, expected, proto)
    mismatches += (f"not in the table: {' '.join(key)}" for key in proto if key not in table)
    return mismatches


def check(path, table):
    file = compile_proto(path)
    mismatches = compare(table, rows_of_proto(file))
    if file.syntax != "proto3":
        mismatches.append("differs: the syntax is not proto3")
    return mismatches


# ---- The proof that the check can fail ----


class Mutation(NamedTuple):
    what: str
    pattern: str  # found in csi.proto exactly once
    replacement: str
    complaint: str  # what the check has to say, among other things


MUTATIONS = [
    Mutation("a changed field number", r"string vendor_version = 2;", "string vendor_version = 4;",
             "differs: field GetPluginInfoResponse vendor_version: number"),
    Mutation("a missing field", r"    bool ready_to_use = 5;\n", "",
             "missing: field Snapshot ready_to_use"),
    Mutation("an extra field", r"(string vendor_version = 2;)", r"\1 string extra = 9;",
             "not in the table: field GetPluginInfoResponse extra"),
    Mutation("a renamed field", r"int64 limit_bytes = 2;", "int64 limit_octets = 2;",
             "missing: field CapacityRange limit_bytes"),
    Mutation("another scalar type", r"int64 limit_bytes = 2;", "uint64 limit_bytes = 2;",
             "differs: field CapacityRange limit_bytes: type"),
    Mutation("another message type", r"Snapshot snapshot = 1;\n    }\n\n    repeated Entry",
             "Volume snapshot = 1;\n    }\n\n    repeated Entry",
             "differs: field ListSnapshotsResponse.Entry snapshot: type"),
    Mutation("a repeated field made singular", r"repeated string mount_flags", "string mount_flags",
             "differs: field VolumeCapability.MountVolume mount_flags: label"),
    Mutation("another map", r"map<string, string> segments", "map<string, int64> segments",
             "differs: field Topology segments: type"),
    Mutation("a renamed oneof", r"oneof access_type", "oneof access_kind",
             "differs: field VolumeCapability block: place"),
    Mutation("an optional field", r"string target_path = 4;", "optional string target_path = 4;",
             "differs: field NodePublishVolumeRequest target_path: place"),
    Mutation("a dropped csi_secret", r"secrets = 7 \[\(csi_secret\) = true\];", "secrets = 7;",
             "differs: field NodePublishVolumeRequest secrets: flags"),
    Mutation("a csi_secret that is false", r"secrets = 7 \[\(csi_secret\) = true\];",
             "secrets = 7 [(csi_secret) = false];",
             "differs: field NodePublishVolumeRequest secrets: flags"),
    Mutation("an extra csi_secret", r"string target_path = 4;",
             "string target_path = 4 [(csi_secret) = true];",
             "differs: field NodePublishVolumeRequest target_path: flags"),
    Mutation("a dropped alpha on a field", r"minimum_volume_size = 3 \[\(alpha_field\) = true\];",
             "minimum_volume_size = 3;",
             "differs: field GetCapacityResponse minimum_volume_size: flags"),
    Mutation("a dropped alpha on a message",
             r"(message VolumeCondition \{\n)    option \(alpha_message\) = true;\n", r"\1",
             "differs: message VolumeCondition -: flags"),
    Mutation("a dropped alpha on a service", r"    option \(alpha_service\) = true;\n", "",
             "differs: service SnapshotMetadata -: flags"),
    Mutation("a dropped alpha on an rpc",
             r"(returns \(GetSnapshotResponse\)) \{\n *option \(alpha_method\) = true;\n *\}",
             r"\1;", "differs: rpc Controller GetSnapshot: flags"),
    Mutation("a dropped alpha on an enum value",
             r"GET_STORAGE_HEALTH = 8 \[\(alpha_enum_value\) = true\];", "GET_STORAGE_HEALTH = 8;",
             "differs: enumval NodeServiceCapability.RPC.Type GET_STORAGE_HEALTH: flags"),
    Mutation("an option the table does not know", r"string target_path = 4;",
             "string target_path = 4 [deprecated = true];",
             "differs: field NodePublishVolumeRequest target_path: flags"),
    Mutation("a changed enum number", r"CLONE_VOLUME = 7;", "CLONE_VOLUME = 99;",
             "differs: enumval ControllerServiceCapability.RPC.Type CLONE_VOLUME: number"),
    Mutation("a missing enum value", r"            CLONE_VOLUME = 7;\n", "",
             "missing: enumval ControllerServiceCapability.RPC.Type CLONE_VOLUME"),
    Mutation("an extra enum", r"(message ProbeRequest \{\})", r"\1 enum Extra { NOTHING = 0; }",
             "not in the table: enum Extra"),
    Mutation("an extra message", r"(message ProbeRequest \{\})", r"\1 message Extra {}",
             "not in the table: message Extra"),
    Mutation("a missing rpc", r"    rpc Probe\(ProbeRequest\) returns \(ProbeResponse\);\n", "",
             "missing: rpc Identity Probe"),
    Mutation("an extra rpc", r"(rpc Probe\(ProbeRequest\) returns \(ProbeResponse\);)",
             r"\1 rpc Extra(ProbeRequest) returns (ProbeResponse);",
             "not in the table: rpc Identity Extra"),
    Mutation("another response", r"rpc Probe\(ProbeRequest\) returns \(ProbeResponse\)",
             "rpc Probe(ProbeRequest) returns (ProbeRequest)", "differs: rpc Identity Probe: type"),
    Mutation("a stream made unary", r"stream GetMetadataDeltaResponse", "GetMetadataDeltaResponse",
             "differs: rpc SnapshotMetadata GetMetadataDelta: label"),
    Mutation("another package", r"package csi\.v1;", "package csi.v2;",
             "differs: rpc Identity Probe: place"),
    Mutation("a changed extension number", r"bool csi_secret = 1059;", "bool csi_secret = 1058;",
             "differs: extension google.protobuf.FieldOptions csi_secret: number"),
    Mutation("a removed field that is only reserved",
             r"VolumeCondition volume_condition = 2;", "reserved 2;",
             "missing: field ControllerGetVolumeResponse.VolumeStatus volume_condition"),
    Mutation("a removed number that is free again",
             r"            // Removed in 1\.13\.\n            VOLUME_CONDITION = 4 .*\n", "",
             "missing: reserved NodeServiceCapability.RPC.Type 4..4"),
    Mutation("a number reserved without a row", r"(string vendor_version = 2;)",
             r"\1 reserved 7;", "not in the table: reserved GetPluginInfoResponse 7"),
]


def try_mutation(mutation, text, table, directory):
    """Why the mutation was not found out, or None."""
    mutated, count = re.subn(mutation.pattern, mutation.replacement, text)
    if count != 1:
        return f"the pattern fits {count} places of {PROTO.name}, not one"
    path = pathlib.Path(directory, PROTO.name)
    path.write_text(mutated, encoding="utf-8")
    mismatches = check(path, table)
    if not any(line.startswith(mutation.complaint) for line in mismatches):
        return f"no mismatch starts with '{mutation.complaint}' among {mismatches}"
    return None


def self_test(table):
    text = PROTO.read_text(encoding="utf-8")
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for mutation in MUTATIONS:
            reason = try_mutation(mutation, text, table, directory)
            print(f"MISSED: {mutation.what}: {reason}" if reason else f"found: {mutation.what}")
            failures += reason is not None
    print(f"{len(MUTATIONS) - failures} of {len(MUTATIONS)} mutations of csi.proto found")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true",
                        help="also break copies of csi.proto and demand that each break is found")
    arguments = parser.parse_args()
    if not shutil.which("protoc"):
        print("skipped: there is no protoc (Debian: protobuf-compiler)")
        return SKIPPED
    table = read_table(TABLE)
    mismatches = check(PROTO, table)
    for line in mismatches:
        print(line)
    print(f"{len(table)} rows of {TABLE.name} checked, {len(mismatches)} mismatches")
    missed = self_test(table) if arguments.self_test else 0
    return 1 if mismatches or missed else 0


if __name__ == "__main__":
    sys.exit(main())
