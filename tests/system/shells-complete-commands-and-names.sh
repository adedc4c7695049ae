#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap completion bash` completes commands, flags and the names of volumes and snapshots in a real bash, and ends
# soon if no server answers.
source "$(dirname "$0")/../lib.sh"

PATH=$(dirname "$SKYCAP"):$PATH
# shellcheck source=/dev/null
source <("$SKYCAP" completion bash)

# completes LINE-WORD...: the last one is completed; prints what it may become
completes() {
    COMP_WORDS=(skycap "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _skycap
    printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
}

expect_equal "a command" "$(completes vol)" volume
expect_equal "a command below" "$(completes volume cl)" clone
expect_equal "a flag" "$(completes volume create x --si)" --size
expect_equal "a value of a flag" "$(completes volume create --size "")" ""
expect_equal "an unknown command" "$(completes frobnicate "")" ""
expect_equal "without a server" "$(CSI_ENDPOINT=unix:$SKYCAP_TMP/none completes volume show "")" ""

start_skycap --backend memory
export CSI_ENDPOINT=unix:$SOCKET
for name in apple apricot plum; do
    "$SKYCAP" volume create "$name" --size 1Mi >/dev/null
done
"$SKYCAP" snapshot create plum prune >/dev/null
expect_equal "volumes" "$(completes volume show ap)" "apple apricot"
expect_equal "a second word that is no volume" "$(completes volume expand plum "")" ""
expect_equal "several volumes" "$(completes volume delete apple p)" plum
expect_equal "behind a flag with its value" "$(completes volume show -o json pl)" plum
expect_equal "behind a long flag" "$(completes volume show --output json pl)" plum
expect_equal "snapshots" "$(completes snapshot show "")" prune

# ---- zsh and fish, with the scripts where they are installed ---------------------------------------

requires zsh fish
mkdir "$SKYCAP_TMP/functions"
"$SKYCAP" completion zsh >"$SKYCAP_TMP/functions/_skycap"
"$SKYCAP" completion fish >"$SKYCAP_TMP/functions/skycap.fish"

# in_zsh WORD...: `compadd` works only while a line is edited; here it prints. The function is loaded by its first use, as compinit arranges it.
in_zsh() {
    zsh -f -c 'fpath=($1 $fpath); shift; autoload -U _skycap; compadd() { print -l -- ${(P)argv[-1]} }; _files() { print files }
        words=(skycap "$@"); CURRENT=$#words; _skycap' zsh "$SKYCAP_TMP/functions" "$@" | sort | xargs
}
in_fish() { # in_fish LINE
    HOME=$SKYCAP_TMP fish --no-config -c "set fish_complete_path $SKYCAP_TMP/functions; complete -C '$1'" | sort | xargs
}
expect_equal "zsh: a command" "$(in_zsh volume cl)" clone
expect_equal "zsh: volumes" "$(in_zsh volume show ap)" "apple apricot"
expect_equal "zsh: files where nothing is known" "$(in_zsh frobnicate "")" files
expect_equal "fish: a command" "$(in_fish 'skycap volume cl')" clone
expect_equal "fish: volumes" "$(in_fish 'skycap volume show ap')" "apple apricot"
"$SKYCAP" completion tcsh 2>/dev/null && fail "a script for a shell that is not known"
exit 0
