# SPDX-License-Identifier: Apache-2.0
"""Breaks the cluster for a while: kills, stops, and cuts of the network. Everything is undone in the
end. Only the thread that has started the servers uses it."""

import time

LONGEST_SECONDS = 7
COPY_SECONDS = 1.5
FAR_CUTS = 0.2  # of power cuts: those of a registry


class Injector:
    def __init__(self, lab, journal, rng):
        self.lab = lab
        self.journal = journal
        self.rng = rng
        self.undos = []
        self.names = []

    # ---- kinds: each returns what undoes it ----

    def kill(self, name):
        process = self.lab.processes[name]
        process.kill()
        return f"kill {name}", process.start

    def stop(self, name):
        process = self.lab.processes[name]
        process.stop()
        return f"stop {name}", process.resume

    def cut_power(self, name):
        machine, process = self.lab.machines[name], self.lab.processes[name]
        mode = machine.cut(process, self.rng)

        def boot():
            machine.boot()
            process.start()

        return f"power of {name} ({mode})", boot

    def unplug(self, name):
        self.lab.network.unplug(name)
        return f"unplug {name}", lambda: self.lab.network.plug(name)

    def cut(self, one, other, is_both):
        network = self.lab.network
        pairs = [(one, other), (other, one)] if is_both else [(one, other)]
        for pair in pairs:
            network.cut(*pair)

        def mend():
            for pair in pairs:
                network.mend(*pair)

        return f"cut {one} {'and' if is_both else 'to'} {other}", mend

    # ---- choosing ----

    def pick(self):
        """One fault at random; None: its machine is broken already."""
        lab, rng = self.lab, self.rng
        others = lab.registries + lab.members
        if lab.machines:
            return self.pick_power()
        kind = rng.choices(
            ["kill", "stop", "unplug", "pair", "far", "kill-other", "stop-other"],
            [5, 3, 3, 4, 2, 3, 2],
        )[0]
        node = rng.choice(lab.in_use if lab.in_use and rng.random() < 0.5 else lab.nodes)
        if kind == "pair":
            other = rng.choice([one for one in lab.nodes if one != node])
            return self.cut(node, other, rng.random() < 0.5)
        if kind == "far":
            return self.cut(node, rng.choice(lab.registries), rng.random() < 0.5)
        name = rng.choice(others) if kind.endswith("-other") else node
        if not lab.processes[name].answers():
            return None
        if kind == "unplug":
            return self.unplug(rng.choice(lab.nodes + others))
        return self.kill(name) if kind.startswith("kill") else self.stop(name)

    def pick_power(self):
        """Mostly in the middle of a copy."""
        lab, rng = self.lab, self.rng
        lab.has_begun.clear()
        if rng.random() < 0.8 and lab.has_begun.wait(COPY_SECONDS):
            time.sleep(rng.choice([0, rng.uniform(0, 0.1), rng.uniform(0, COPY_SECONDS)]))
        is_far = rng.random() < FAR_CUTS
        name = rng.choice(lab.registries if is_far else lab.in_use or lab.nodes)
        return self.cut_power(name) if lab.processes[name].is_running() else None

    def begin(self, ends):
        picked = self.pick()
        if not picked:
            return
        name, undo = picked
        self.journal.write("fault", name)
        self.names.append(name)
        self.undos.append((ends, name, undo))

    def heal(self, until):
        """Undoes what ends before that time."""
        for entry in sorted(self.undos, key=lambda one: one[0]):
            if entry[0] > until:
                continue
            self.undos.remove(entry)
            entry[2]()
            self.journal.write("healed", entry[1])

    def run(self, seconds, count):
        """`count` faults during that time. Returns when it has passed; some may last still."""
        began = time.monotonic()
        starts = sorted(self.rng.uniform(0, seconds * 0.8) for _ in range(count))
        while time.monotonic() < began + seconds:
            now = time.monotonic()
            self.heal(now)
            if starts and now >= began + starts[0]:
                starts.pop(0)
                self.begin(now + self.rng.uniform(0.3, LONGEST_SECONDS))
            time.sleep(0.02)

    def heal_all(self):
        self.heal(float("inf"))
