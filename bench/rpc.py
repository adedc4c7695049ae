# SPDX-License-Identifier: Apache-2.0
"""The rpc part: our server beside grpc-go's and grpc-js's, our proxy beside nginx, workers beside the loop, a long
stream beside a bare socket. All on unix sockets; runs of those that are compared take turns, so that whatever else the
machine does meets all of them."""

import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import types

import nginx
from harness import NotMeasured, Process, load, middle, print_table, run_program, times

METHOD = "csi.v1.Identity/GetPluginInfo"
LOADS = [(1, 1), (1, 100), (10, 10), (50, 10)]  # connections x streams
ONE = (1, 1)
BUSY = (10, 10)
SERVER_CPU, CLIENT_CPU = "0", "1"
LEVEL = ["--log-level", "info"]  # skycap's default, for programs that have another

OURS, GO, JS = "skycap serve", "grpc-go", "grpc-js"
OUR_PROXY, OUR_RELAY, NGINX = "our proxy", "our relay", "nginx grpc_pass"

NGINX_SERVER = """
    server {{
        listen unix:{socket} http2;
        location / {{ grpc_pass grpc://behind; }}
    }}
"""


class Bench:
    """Where things are, and the processes of one topic."""

    def __init__(self, root, build, arguments, directory, stack):
        self.build, self.directory, self.stack = build, directory, stack
        self.peers = root / "build/peers"
        self.repeats, self.seconds = arguments.repeats, arguments.seconds
        body = directory / "request"
        body.write_bytes(b"\0" * 5)  # an empty message, not compressed
        self.request = types.SimpleNamespace(
            flags=["-H", "content-type: application/grpc", "-H", "te: trailers", "-d", body],
            url=f"http://localhost/{METHOD}")

    def start(self, name, command, cpus=None):
        """Starts a server that listens on .socket and waits for its first right answer. `command` has SOCKET in it."""
        label = re.sub(r"\W+", "-", name)
        socket = self.directory / f"{label}.sock"
        command = [str(word).replace("SOCKET", str(socket)) for word in command]
        process = self.stack.enter_context(Process(name, command, self.directory / f"{label}.log", cpus))
        process.socket = socket
        process.wait_for_socket(socket)
        process.answer_bytes = self.check_answer(process)
        process.memory_at_start = process.memory_mib()
        return process

    def start_skycap(self, name, cpus=None):
        return self.start(name, [self.build / "skycap", "serve", "--endpoint", "unix:SOCKET",
                                 "--data", self.directory / "data"], cpus)

    def check_answer(self, process):
        """Makes one call whose content is looked at; tells the length of the answer on the wire."""
        answer = json.loads(run_program(
            [self.build / "skycap", "call", "--timeout", "5", f"unix:{process.socket}", METHOD, "{}"], 10))
        if answer.get("name") != "csi.skycap.dev" or answer.get("vendorVersion") != "0.1.0":
            raise NotMeasured(f"{process.name} gives a wrong answer: {answer}")
        output = run_program(["h2load", *self.request.flags, "-B", f"unix:{process.socket}", self.request.url], 10)
        return int(re.search(r"\((\d+)\) data", output)[1])

    def compare(self, processes, loads, cpus=None):
        """{(name, load): samples}, after one run of each that does not count. All take turns."""
        samples = {}
        for process in processes:
            self.load(process, BUSY, cpus)
        for shape in loads:
            for _ in range(self.repeats):
                for process in processes:
                    samples.setdefault((process.name, shape), []).append(self.load(process, shape, cpus))
        return samples

    def load(self, process, shape, cpus):
        try:
            return load(process, self.request, *shape, self.seconds, cpus)
        except NotMeasured as why:
            raise NotMeasured(f"{process.name} at {show(shape)}: {why}") from None

    def runs(self):
        return f"median of {self.repeats} runs of {self.seconds:g} s"


def show(shape):
    return f"{shape[0]}x{shape[1]}"


def medians(samples):
    return {key: middle(values) for key, values in samples.items()}


def of(samples, name, shape, figure):
    """One figure of all samples of one process."""
    return [getattr(sample, figure) for sample in samples[name, shape]]


def compared(samples, ours, theirs, shape, figure):
    return times(of(samples, ours, shape, figure), of(samples, theirs, shape, figure))


# ---- servers ----


def start_servers(bench, suffix="", cpus=None):
    return [
        bench.start_skycap(OURS + suffix, cpus),
        bench.start(GO + suffix, [bench.peers / "identity-server", "--listen", "unix:SOCKET"], cpus),
        bench.start(JS + suffix, [bench.peers / "js-identity-server", "--listen", "unix:SOCKET"], cpus),
    ]


def print_servers(bench, processes, figures):
    shapes = [show(shape) for shape in LOADS]
    where = f"unix socket, {METHOD}, nothing pinned, {bench.runs()}"
    print_table(f"Servers: requests per second ({where})", ["connections x streams", *shapes],
                [[p.name] + [f"{figures[p.name, shape].per_second:,.0f}" for shape in LOADS] for p in processes])
    print_table("Servers: CPU of the server, us per call", ["connections x streams", *shapes],
                [[p.name] + [f"{figures[p.name, shape].cpu_us:.1f}" for shape in LOADS] for p in processes])
    print_table("Servers: a lone caller's wait (1x1), memory",
                ["", "mean us", "RSS MiB after start", "after load", "at most"],
                [[p.name, f"{figures[p.name, ONE].mean_us:.0f}", f"{p.memory_at_start:.1f}", f"{p.memory_after:.2f}",
                  f"{p.memory_mib('VmHWM'):.1f}"] for p in processes])


def servers_topic(bench, report):
    processes = start_servers(bench)
    samples = bench.compare(processes, LOADS)
    figures = medians(samples)
    for process in processes:
        process.memory_after = process.memory_mib()
    print_servers(bench, processes, figures)
    ours, go = figures[OURS, BUSY], figures[GO, BUSY]
    faster, dearer = (compared(samples, *names, BUSY, figure)
                      for names, figure in (((OURS, GO), "per_second"), ((GO, OURS), "cpu_us")))
    report.bar(faster >= 3, "throughput at 10x10 at least 3 times grpc-go's",
               f"{ours.per_second:,.0f} and {go.per_second:,.0f}, {faster:.2f} times")
    report.bar(dearer >= 4, "CPU per call at 10x10 at most a quarter of grpc-go's",
               f"{ours.cpu_us:.2f} us and {go.cpu_us:.2f} us, 1/{dearer:.1f}")
    memory, peak = processes[0].memory_after, processes[0].memory_mib("VmHWM")
    report.bar(memory < 5, "RSS after load under 5 MiB", f"{memory:.2f} MiB ({peak:.2f} MiB at most, under load)")
    ours, go = figures[OURS, ONE], figures[GO, ONE]
    report.bar(ours.mean_us <= go.mean_us, "1x1 latency not above grpc-go's",
               f"{ours.mean_us:.0f} us and {go.mean_us:.0f} us")


def pinned_topic(bench, _report):
    """No bar: how much of the difference is that grpc-go may use both cores. Go sees one core and takes one."""
    if os.cpu_count() < 2:
        raise NotMeasured("server and client cannot have a core each: there is only one")
    processes = start_servers(bench, suffix=" (pinned)", cpus=SERVER_CPU)
    figures = medians(bench.compare(processes, [ONE, BUSY], cpus=CLIENT_CPU))
    print_table("Servers again, pinned: server on one core, client on another (for comparison, no bar)",
                ["", "1x1 mean us", "10x10 requests/s", "CPU us/call"],
                [[p.name, f"{figures[p.name, ONE].mean_us:.0f}", f"{figures[p.name, BUSY].per_second:,.0f}",
                  f"{figures[p.name, BUSY].cpu_us:.1f}"] for p in processes])


# ---- a handler on a worker ----


def start_loop_and_worker(bench, suffix="", cpus=None):
    program = bench.build / "bench/rpc-server"
    return [bench.start(name + suffix, [program, "--listen", "unix:SOCKET", *LEVEL, where], cpus)
            for name, where in (("handler on the loop", "loop"), ("handler on a worker", "worker"))]


def workers_topic(bench, report):
    """A lone call's time depends most on whether the kernel puts caller and server on one core, and it changes its mind
    between runs: hence many short ones, and a second pair that has no choice."""
    bench.repeats, bench.seconds = bench.repeats * 2, bench.seconds / 2
    free = start_loop_and_worker(bench)
    bound = start_loop_and_worker(bench, ", all on one core", cpus=SERVER_CPU)
    figures = medians(bench.compare(free, [ONE, BUSY]) | bench.compare(bound, [ONE, BUSY], cpus=SERVER_CPU))
    print_table(f"Where the handler runs (bench/rpc-server, {bench.runs()})",
                ["", "1x1 mean us", "CPU us/call", "10x10 requests/s", "CPU us/call"],
                [[p.name, f"{figures[p.name, ONE].mean_us:.0f}", f"{figures[p.name, ONE].cpu_us:.1f}",
                  f"{figures[p.name, BUSY].per_second:,.0f}", f"{figures[p.name, BUSY].cpu_us:.1f}"]
                 for p in free + bound])
    apart, together = (figures[slow.name, ONE].mean_us - figures[fast.name, ONE].mean_us
                       for fast, slow in (free, bound))
    cpu = figures[free[1].name, ONE].cpu_us - figures[free[0].name, ONE].cpu_us
    report.bar(max(apart, together) <= 15, "a handler on a worker costs at most 15 us more, latency at 1x1, both ways",
               f"{apart:+.0f} us with nothing pinned, {together:+.0f} us with all on one core; "
               f"CPU per call {cpu:+.1f} us")


# ---- proxy ----


def start_nginx(bench, upstream):
    server = NGINX_SERVER.format(socket=bench.directory / "nginx-grpc_pass.sock")
    return bench.start(NGINX, nginx.command(bench.directory, f"unix:{upstream}", server))


def proxy_topic(bench, report):
    direct = bench.start_skycap("direct")
    ours = bench.start(OUR_PROXY, [bench.build / "tests/interop-proxy", "--listen", "unix:SOCKET", *LEVEL,
                                   "--to", f"unix:{direct.socket}"])
    relay = bench.start(OUR_RELAY, [bench.build / "bench/rpc-server", "--listen", "unix:SOCKET", *LEVEL,
                                    "--to", f"unix:{direct.socket}", "relay"])
    peer = start_nginx(bench, direct.socket)
    samples = bench.compare([direct, ours, relay, peer], [ONE, BUSY])
    figures = medians(samples)
    rows = [[p.name, f"{figures[p.name, ONE].mean_us:.0f}", f"{figures[p.name, BUSY].per_second:,.0f}",
             "-" if p is direct else f"{figures[p.name, BUSY].cpu_us:.2f}",
             "-" if p is direct else f"{p.memory_mib():.1f}"] for p in (direct, ours, relay, peer)]
    print_table(f"Proxies, and a relay that decodes and changes each message, in front of skycap serve (nothing pinned, {bench.runs()})",
                ["", "1x1 mean us", "10x10 requests/s", "CPU of the proxy us/call", "its RSS MiB after load"], rows)
    mine, theirs = figures[OUR_PROXY, BUSY], figures[NGINX, BUSY]
    faster = compared(samples, OUR_PROXY, NGINX, BUSY, "per_second")
    report.bar(faster >= 3, "proxy at 10x10 at least 3 times nginx",
               f"{mine.per_second:,.0f} and {theirs.per_second:,.0f}, {faster:.2f} times")
    report.bar(mine.cpu_us < 5, "proxy under 5 us CPU per call at 10x10", f"{mine.cpu_us:.2f} us")


# ---- stream ----


def megabytes_per_second(output):
    total, seconds = re.match(r"(\d+) bytes in ([\d.]+) s", output).groups()
    if int(total) != 2**30:
        raise NotMeasured(f"{total} bytes came, not 1 GiB")
    return int(total) / 1e6 / float(seconds)


def stream_topic(bench, report):
    programs = bench.build / "bench"
    server = bench.start("rpc-server", [programs / "rpc-server", "--listen", "unix:SOCKET", *LEVEL, "worker"])
    go_socket = bench.directory / "go-stream.sock"
    go = bench.stack.enter_context(Process("grpc-go interop-server", [
        bench.peers / "interop-server", "--listen", f"unix:{go_socket}"], bench.directory / "go-stream.log"))
    go.wait_for_socket(go_socket)
    commands = {
        "bare socket": [programs / "bare-socket"],
        "our server": [programs / "stream-client", f"unix:{server.socket}"],
        "grpc-go's server": [programs / "stream-client", f"unix:{go_socket}"],
    }
    rates = {name: [] for name in commands}
    for _ in range(bench.repeats):
        for name, command in commands.items():
            rates[name].append(megabytes_per_second(run_program(command, 60)))
    bare, ours = rates["bare socket"], rates["our server"]
    memory = {"our server": server, "grpc-go's server": go}
    print_table(f"One server stream of 1 GiB in messages of 64 KiB, read by our client (median of {bench.repeats} runs)",
                ["", "MB/s", "slowest", "fastest", "of the bare socket", "server's RSS MiB at most"],
                [[name, f"{statistics.median(values):,.0f}", f"{min(values):,.0f}", f"{max(values):,.0f}",
                  f"{times(values, bare):.2f}",
                  f"{memory[name].memory_mib('VmHWM'):.1f}" if name in memory else "-"]
                 for name, values in rates.items()])
    report.bar(times(ours, bare) >= 0.5, "1 GiB stream at least half as fast as a bare unix socket",
               f"{statistics.median(ours):,.0f} MB/s and {statistics.median(bare):,.0f} MB/s, {times(ours, bare):.2f} times")


# ---- all ----

TOPICS = {
    "servers": servers_topic,
    "pinned servers": pinned_topic,
    "handler on a worker": workers_topic,
    "proxy": proxy_topic,
    "stream": stream_topic,
}


def install_peers(root, *parts):
    only = [word for part in parts for word in ("--only", part)]
    done = subprocess.run([root / "tests/peers/install", *only], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise NotMeasured(f"tests/peers/install ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def print_versions(root, build):
    """Whose figures these are."""
    go_mod = (root / "tests/peers/go/go.mod").read_text()
    grpc_go = re.search(r"google.golang.org/grpc (\S+)", go_mod)[1]
    package = json.loads((root / "tests/peers/js/package.json").read_text())
    grpc_js = package["dependencies"]["@grpc/grpc-js"]
    nginx_version = subprocess.getoutput("nginx -v")
    print(f"measured: {build}/skycap serve; grpc-go {grpc_go}, grpc-js {grpc_js}, {nginx_version}; "
          "load by h2load", flush=True)


def measure(root, build, arguments, report):
    with report.topic("peers"):
        install_peers(root)
    print_versions(root, build)
    for name, topic in TOPICS.items():
        with report.topic(name), contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="skycap-bench-"))
            topic(Bench(root, build, arguments, pathlib.Path(directory), stack), report)
