#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the kubelet's plugin manager: tests/kubelet.py SKYCAP DIRECTORY

Watches the directory for sockets. A new one is asked who it is; the driver behind it is asked NodeGetInfo, and told how that ended. As with the kubelet, a driver that
cannot answer is not asked again before its socket is made again, and one whose socket is made again is deregistered first. Says what it does, a line of JSON each, with
the time in seconds.
"""

import ctypes
import json
import os
import select
import stat
import struct
import subprocess
import sys
import time

IN_CREATE, IN_DELETE, IN_MOVED_TO = 0x100, 0x200, 0x80
EVENT = struct.Struct("iIII")
LOOK_SECONDS = 0.5  # the kubelet's is 1


class Refused(Exception):
    """What the other side has answered instead."""


def say(what, **more):
    print(json.dumps({"what": what, "time": round(time.monotonic(), 3), **more}), flush=True)


class Kubelet:
    def __init__(self, skycap, directory):
        self.skycap = skycap
        self.directory = directory
        self.stamp = 0
        self.wanted = {}  # sockets that are there, each with a number of its own
        self.registered = {}  # those that were asked, by the same numbers

    def call(self, socket, method, request):
        done = subprocess.run([self.skycap, "call", "--timeout", "5", f"unix:{socket}", method, json.dumps(request)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return json.loads(done.stdout)

    def see(self, name, is_there):
        path = os.path.join(self.directory, name)
        self.wanted.pop(path, None)
        try:
            if is_there and stat.S_ISSOCK(os.stat(path).st_mode):
                self.stamp += 1
                self.wanted[path] = self.stamp
        except FileNotFoundError:
            pass

    def register(self, path):
        info = self.call(path, "pluginregistration.Registration/GetInfo", {})
        self.registered[path] = self.wanted[path]
        try:
            node = self.call(info["endpoint"], "csi.v1.Node/NodeGetInfo", {})
        except Refused as error:
            self.call(path, "pluginregistration.Registration/NotifyRegistrationStatus", {"error": str(error)})
            say("refused", error=str(error))
            return
        say("registered", topology=node.get("accessibleTopology", {}).get("segments", {}), limit=int(node.get("maxVolumesPerNode", 0)))
        self.call(path, "pluginregistration.Registration/NotifyRegistrationStatus", {"pluginRegistered": True})

    def look(self):
        for path, number in list(self.registered.items()):
            if self.wanted.get(path) != number:
                del self.registered[path]
                say("deregistered")
        for path in self.wanted:
            if path not in self.registered:
                try:
                    self.register(path)
                except Refused as error:  # it is asked again
                    say("unreachable", error=str(error))

    def run(self):
        libc = ctypes.CDLL(None, use_errno=True)
        notices = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc.inotify_add_watch(notices, self.directory.encode(), IN_CREATE | IN_DELETE | IN_MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        for name in os.listdir(self.directory):
            self.see(name, True)
        say("started")
        while True:
            self.look()
            time.sleep(LOOK_SECONDS)
            while select.select([notices], [], [], 0)[0]:
                data = os.read(notices, 65536)
                while data:
                    _, mask, _, size = EVENT.unpack_from(data)
                    self.see(data[EVENT.size:EVENT.size + size].rstrip(b"\0").decode(), not mask & IN_DELETE)
                    data = data[EVENT.size + size:]


Kubelet(*sys.argv[1:]).run()
