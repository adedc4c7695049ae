# SPDX-License-Identifier: Apache-2.0
"""The registry part: calls passed on to a controller by our registry, beside nginx grpc_pass and beside a relay on
grpc-go that connects for each call as OIM's registry did, all with mutual TLS on both sides and the same certificates;
and a registry with 100,000 controllers beside one with 10. The load is bench/call-load; runs of those that are compared
take turns."""

import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

import nginx
from harness import START_SECONDS, NotMeasured, Process, print_table, run_program, times
from rpc import install_peers

METHOD = "csi.v1.Identity/GetPluginInfo"
CONTROLLER = "node-000000"
DIRECT, OURS, NGINX, RELAY = "direct", "skycap registry", "nginx grpc_pass", "grpc-go relay"
ALONE, CLIENTS, CROWD = (1, 1), (16, 1), (16, 10)  # connections x streams
TIMES_NGINX, MOST_ADDED_US = 3, 80

FEW, MANY = 10, 100_000
MOST_SLOWER, MOST_MIB, MOST_P99_MS = 1.2, 40, 10

NGINX_SERVER = """
    ssl_certificate {pki}/component.registry.crt;
    ssl_certificate_key {pki}/component.registry.key;
    ssl_client_certificate {pki}/ca.crt;
    ssl_verify_client on;
    server {{
        listen {address} ssl http2;
        location / {{
            grpc_pass grpcs://behind;
            grpc_ssl_certificate {pki}/component.registry.crt;
            grpc_ssl_certificate_key {pki}/component.registry.key;
            grpc_ssl_trusted_certificate {pki}/ca.crt;
            grpc_ssl_verify on;
            grpc_ssl_name controller.{controller};
            grpc_ssl_server_name on;
        }}
    }}
"""


class Bench:
    """Certificates, servers, and the load on them."""

    def __init__(self, root, build, arguments, directory, stack):
        self.build, self.directory, self.stack = build, directory, stack
        self.peers = root / "build/peers"
        self.repeats, self.seconds = arguments.repeats, arguments.seconds
        self.pki = directory / "pki"
        self.skycap("pki", "init", self.pki)
        for name in ("component.registry", f"controller.{CONTROLLER}", f"host.{CONTROLLER}", "user.admin"):
            self.skycap("pki", "issue", name, "--pki", self.pki)

    def skycap(self, *words, seconds=30):
        return run_program([self.build / "skycap", *words], seconds)

    def tls(self, name):
        return ["--tls-ca", self.pki / "ca.crt", "--tls-cert", self.pki / f"{name}.crt",
                "--tls-key", self.pki / f"{name}.key"]

    def start(self, name, command, tls_name, address):
        """A server with TLS at the address: its name must be tls_name."""
        label = name.replace(" ", "-")
        process = self.stack.enter_context(Process(name, command, self.directory / f"{label}.log"))
        process.tls_name, process.address = tls_name, address
        wait_for_port(process)
        return process

    def start_controller(self):
        address = free_address()
        return self.start(DIRECT, [self.build / "bench/rpc-server", *self.tls(f"controller.{CONTROLLER}"),
                                   "--listen", address, "--log-level", "info", "loop"], f"controller.{CONTROLLER}", address)

    def start_registry(self, name=OURS):
        address, label = free_address(), name.replace(" ", "-")
        endpoint = f"unix:{self.directory / label}.sock"
        process = self.start(name, [self.build / "skycap", "serve", "--roles", "registry", "--endpoint", endpoint,
                                    "--data", self.directory / f"{label}-data", "--listen", address,
                                    *self.tls("component.registry")],
                             "component.registry", address)
        process.endpoint = endpoint
        return process

    def start_nginx(self, controller):
        address = free_address()
        server = NGINX_SERVER.format(pki=self.pki, address=address, controller=CONTROLLER)
        return self.start(NGINX, nginx.command(self.directory, controller.address, server),
                          "component.registry", address)

    def start_relay(self, controller):
        address = free_address()
        return self.start(RELAY, [self.peers / "oim-relay", *self.tls("component.registry"), "--listen", address,
                                  "--to", controller.address, "--to-name", controller.tls_name],
                          "component.registry", address)

    def load_command(self, process, shape, who, method, *flags):
        return [self.build / "bench/call-load", *self.tls(who), "--tls-name", process.tls_name,
                "--connections", shape[0], "--streams", shape[1], "--milliseconds", f"{self.seconds * 1000:.0f}",
                *flags, process.address, method]

    def load(self, process, shape, who, method, *flags):
        """What call-load says of one run, and the CPU time per call that the process took meanwhile."""
        before = process.cpu_seconds()
        command = self.load_command(process, shape, who, method, *flags)
        try:
            result = json.loads(run_program(command, self.seconds + 60))
        except NotMeasured as why:
            raise NotMeasured(f"{process.name} at {show(shape)}: {why}") from None
        result["per_second"] = result["calls"] / result["seconds"]
        result["cpu_us"] = (process.cpu_seconds() - before) * 1e6 / result["calls"]
        return result

    def rounds(self, *runs):
        """The results of each, after one that does not count, taking turns."""
        for run in runs:
            run()
        return list(zip(*([run() for run in runs] for _ in range(self.repeats))))

    def runs(self):
        return f"median of {self.repeats} runs of {self.seconds:g} s"


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as trial:
        return f"127.0.0.1:{trial.getsockname()[1]}"


def wait_for_port(process):
    host, port = process.address.split(":")
    deadline = time.monotonic() + START_SECONDS
    while True:
        with socket.socket() as trial:
            if trial.connect_ex((host, int(port))) == 0:
                return
        if process.popen.poll() is not None or time.monotonic() > deadline:
            raise NotMeasured(f"{process.name} did not start: {process.log.read_text(errors='replace')[-500:].strip()}")
        time.sleep(0.05)


def show(shape):
    return f"{shape[0]}x{shape[1]}"


def median(results, figure):
    return statistics.median(result[figure] for result in results)


# ---- passing on ----


def call(bench, process, shape):
    """As a host through what stands between; to the controller itself as the registry."""
    if process.name == DIRECT:
        return bench.load(process, shape, "component.registry", METHOD)
    return bench.load(process, shape, f"host.{CONTROLLER}", METHOD, "--controller", CONTROLLER)


def measure_calls(bench, processes):
    """{(name, shape): results}"""
    found = {}
    for shape in (ALONE, CLIENTS, CROWD):
        # Forty calls per second are too few for ten times as many callers.
        those = [p for p in processes if shape != CROWD or p.name != RELAY]
        results = bench.rounds(*((lambda p=process: call(bench, p, shape)) for process in those))
        found |= {(process.name, shape): result for process, result in zip(those, results)}
    return found


def added_us(found, name):
    """The difference of medians, turn by turn: what disturbs one turn disturbs both sides."""
    return statistics.median(slow["p50_us"] - fast["p50_us"]
                             for slow, fast in zip(found[name, ALONE], found[DIRECT, ALONE]))


def print_calls(bench, processes, found):
    rows = []
    for process in processes:
        is_between = process.name != DIRECT
        row = [process.name, f"{median(found[process.name, ALONE], 'p50_us'):.0f}",
               f"{added_us(found, process.name):+.0f}" if is_between else "-"]
        for shape in (CLIENTS, CROWD):
            results = found.get((process.name, shape))
            row += [f"{median(results, 'per_second'):,.0f}" if results else "-",
                    f"{median(results, 'cpu_us'):.1f}" if results and is_between else "-"]
        rows.append(row + [f"{process.memory_mib():.1f}" if is_between else "-"])
    print_table(f"Calls to a controller, mutual TLS on both sides (loopback, {METHOD}, {bench.runs()})",
                ["", "1x1 p50 us", "added"] +
                [text for shape in (CLIENTS, CROWD) for text in (f"{show(shape)} calls/s", "CPU us/call")] +
                ["RSS MiB after load"], rows)


def calls_topic(bench, report):
    controller = bench.start_controller()
    registry = bench.start_registry()
    bench.skycap("call", "--timeout", "10", registry.endpoint, "oim.v0.Registry/RegisterController",
                 json.dumps({"controllerId": CONTROLLER, "address": controller.address}))
    processes = [controller, registry, bench.start_nginx(controller), bench.start_relay(controller)]
    found = measure_calls(bench, processes)
    print_calls(bench, processes, found)
    ours, theirs = (median(found[name, CROWD], "per_second") for name in (OURS, NGINX))
    faster, faster_for_few = (times(*([one["per_second"] for one in found[name, shape]] for name in (OURS, NGINX)))
                              for shape in (CROWD, CLIENTS))
    report.bar(faster >= TIMES_NGINX,
               f"calls through the registry at {show(CROWD)} at least {TIMES_NGINX} times nginx",
               f"{ours:,.0f} and {theirs:,.0f}, {faster:.2f} times (at {show(CLIENTS)} {faster_for_few:.2f} times)")
    added = added_us(found, OURS)
    report.bar(added < MOST_ADDED_US, f"the registry adds under {MOST_ADDED_US} us to the median of a lone call",
               f"{added:+.0f} us ({NGINX} {added_us(found, NGINX):+.0f} us, {RELAY} {added_us(found, RELAY):+.0f} us)")


# ---- many controllers ----


def fill(bench, registry, count):
    """On the unix socket, by many at a time, so that they share commits."""
    began = time.monotonic()
    run_program([bench.build / "bench/call-load", "--connections", "4", "--streams", "64", "--count", count,
                 "--ids", count, "--register", "10.0.0.1:8999", registry.endpoint,
                 "oim.v0.Registry/RegisterController"], 300)
    return time.monotonic() - began


def look_up(bench, registry, count, shape):
    return bench.load(registry, shape, "user.admin", "oim.v0.Registry/GetValues", "--look-up", "--ids", count)


@contextlib.contextmanager
def reading_all(bench, registry):
    """Somebody reads all controllers meanwhile, again and again. Afterwards, how often is in the list."""
    command = bench.load_command(registry, ALONE, "user.admin", "oim.v0.Registry/GetControllers")
    results = []
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as reader:
        yield results
        output, _ = reader.communicate(timeout=60)
        if reader.returncode != 0:
            raise NotMeasured("GetControllers fails")
        results.append(json.loads(output))


def look_up_meanwhile(bench, registry):
    with reading_all(bench, registry) as results:
        found = look_up(bench, registry, MANY, ALONE)
    found["whole"] = results[0]
    return found


def controllers_topic(bench, report):
    few, many = bench.start_registry(f"{FEW} controllers"), bench.start_registry(f"{MANY:,} controllers")
    fill(bench, few, FEW)
    seconds = fill(bench, many, MANY)
    alone_few, alone_many, crowd_few, crowd_many, busy = bench.rounds(
        *((lambda p=process, n=count, s=shape: look_up(bench, p, n, s))
          for shape in (ALONE, CROWD) for process, count in ((few, FEW), (many, MANY))),
        lambda: look_up_meanwhile(bench, many))
    memory, peak = many.memory_mib(), many.memory_mib("VmHWM")
    print_table(f"Looking up one controller (GetValues, mutual TLS, {bench.runs()}); {MANY:,} were registered in {seconds:.1f} s",
                ["", "1x1 p50 us", "p99 us", f"{show(CROWD)} calls/s", "CPU us/call", "RSS MiB"],
                [[process.name, f"{median(alone, 'p50_us'):.1f}", f"{median(alone, 'p99_us'):.0f}",
                  f"{median(crowd, 'per_second'):,.0f}", f"{median(crowd, 'cpu_us'):.1f}", f"{process.memory_mib():.1f}"]
                 for process, alone, crowd in ((few, alone_few, crowd_few), (many, alone_many, crowd_many))])
    whole = [result["whole"] for result in busy]
    print(f"\n  while somebody reads all {MANY:,} ({median(whole, 'p50_us') / 1000:.1f} ms each, "
          f"{whole[0]['answer_bytes'] / 2**20:.1f} MiB): p50 {median(busy, 'p50_us'):.0f} us, p99 {median(busy, 'p99_us'):.0f} us, "
          f"at most {max(result['max_us'] for result in busy) / 1000:.1f} ms")
    slower = statistics.median(a["p50_us"] / b["p50_us"] for a, b in zip(alone_many, alone_few))
    report.bar(slower <= MOST_SLOWER, f"looking up one of {MANY:,} controllers takes at most {MOST_SLOWER} times as long as one of {FEW}",
               f"{slower:.2f} times; CPU per call {median(crowd_many, 'cpu_us') / median(crowd_few, 'cpu_us'):.2f} times")
    report.bar(memory < MOST_MIB, f"RSS with {MANY:,} controllers under {MOST_MIB} MiB", f"{memory:.1f} MiB ({peak:.1f} MiB at most)")
    p99 = median(busy, "p99_us") / 1000
    report.bar(p99 < MOST_P99_MS, f"p99 of a small call under {MOST_P99_MS} ms while all {MANY:,} are read",
               f"{p99:.2f} ms (with nobody reading {median(alone_many, 'p99_us') / 1000:.2f} ms)")


TOPICS = {"calls through the registry": calls_topic, f"{MANY:,} controllers": controllers_topic}


def measure(root, build, arguments, report):
    with report.topic("peers"):
        install_peers(root, "go")
    for name, topic in TOPICS.items():
        with report.topic(name), contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="skycap-bench-"))
            topic(Bench(root, build, arguments, pathlib.Path(directory), stack), report)
