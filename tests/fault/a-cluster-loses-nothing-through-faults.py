#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
"""Five nodes, two registries and three members of etcd, with mutual TLS. Links are cut, and nodes, registries and members are killed and stopped at
random, while volumes are made, written, cloned, restored and deleted. Nothing is lost, nothing is left, and every answer is true. For longer series:
--rounds 200; --help lists the rest."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
import rounds

sys.exit(rounds.main())
