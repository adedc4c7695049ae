#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
"""Three nodes and a registry on disks that lose what was not flushed. The power of one or more of them is cut at random, mostly in the middle of a
move, a clone or a spread. Nothing is lost, nothing is left, and every volume has one owner. For longer series: --rounds 200; --help lists the rest."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
import rounds

FLAGS = ["--power", "--store", "sqlite", "--nodes", "3", "--backends", "btrfs,btrfs,dir"]
FLAGS += ["--seconds", "6", "--limit", "30"]

sys.exit(rounds.main(FLAGS))
