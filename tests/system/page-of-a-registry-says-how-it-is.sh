#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page of a registry, which serves no CSI: it is ready, and nothing is degraded.
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../page.sh"
requires curl

start_page --roles registry --node-id n1
expect_equal "the node" "$(ask /api/v1/nodes | value '[(n["id"], n["state"], n["trouble"]) for n in v["nodes"]]')" "[('n1', 'ready', '')]"
expect_equal "what is degraded" "$(ask /api/v1/overview | value 'v["attention"]')" "[]"
