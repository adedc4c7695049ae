#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without a container tool: `make image` builds stages that deploy/Containerfile has, of the version of the program. What it copies is in the source tree or made by ninja, the
# build is that of the Makefile, and the image has the packages of all programs that skycap runs.
source "$(dirname "$0")/../peers.sh"
requires ninja
file=$SKYCAP_ROOT/deploy/Containerfile
install=$SKYCAP_ROOT/tools/install-packages

# The commands of make image, in place of a container tool.
mkdir "$SKYCAP_TMP/bin"
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\n' "$SKYCAP_TMP/commands" >"$SKYCAP_TMP/bin/podman"
chmod +x "$SKYCAP_TMP/bin/podman"
PATH=$SKYCAP_TMP/bin:$PATH make -s -C "$SKYCAP_ROOT" image IMAGE=registry.example.com/skycap >"$SKYCAP_TMP/make" 2>&1 || fail "make image: $(cat "$SKYCAP_TMP/make")"
version=$("$SKYCAP" version | cut -d ' ' -f 2)
check "what make image builds" "$(cat "$SKYCAP_TMP/commands")" "build -f deploy/Containerfile -t registry.example.com/skycap:$version .
build -f deploy/Containerfile --target velero -t registry.example.com/skycap-velero:$version ."
check "without a tool" "$(PATH=$SKYCAP_TMP/none /usr/bin/make -s -C "$SKYCAP_ROOT" SHELL=/bin/sh image 2>&1 | head -n 1)" "make image needs podman or docker"

# stage NAME: its lines; the last one has no name.
stage() {
    awk -v name="$1" '$1 == "FROM" { inside = ($4 == name) } inside' "$file"
}
# packages_of NAME: the packages that it installs.
packages_of() {
    local needs
    needs=$(stage "$1" | sed -nE 's/^RUN [^ ]*install-packages ([a-z ]+).*/\1/p')
    [ -n "$needs" ] || fail "the stage '$1' installs nothing"
    # shellcheck disable=SC2086 # needs are words
    "$install" --list $needs
}
check "packages of the build" "$(packages_of build | xargs)" "$("$install" --list build | xargs)"
check "packages of the image" "$(packages_of "" | xargs)" "$("$install" --list run | xargs)"
check "the package of each program that skycap runs" \
    "$(sed -n '/^} packages\[\] = {/,/^};/p' "$SKYCAP_ROOT/src/base/process.c" | grep -oE '", "[a-z0-9-]+"' | cut -d '"' -f 3 | sort -u | xargs)" "$(packages_of "" | sort | xargs)"
check "both are of the Debian that the packages are of" "$(sed -n 's/^FROM \(debian[^ ]*\).*/\1/p' "$file" | sort -u)" debian:12-slim

check "how it is built" "$(stage build | grep -oE -- '--buildtype=[a-z]+')" "$(grep -m 1 -oE -- '-Dbuildtype=[a-z]+' "$SKYCAP_ROOT/Makefile" | sed 's/-D/--/')"
read -ra targets <<<"$(stage build | sed -nE 's/.*ninja -C [^ ]+ ([a-z -]+[a-z]).*/\1/p')"
check "what it builds" "${targets[*]}" "skycap skycap-velero"
for target in "${targets[@]}"; do
    if ninja -C "$SKYCAP_BUILD" -t query "$target" >"$SKYCAP_TMP/query" 2>&1; then passes "ninja makes $target"; else fails "ninja makes $target" "$(cat "$SKYCAP_TMP/query")"; fi
    check "$target is copied" "$(grep -c -- "^COPY --from=build /build/$target " "$file")" 1
done
# .dockerignore leaves out what is never needed, and nothing that is.
for path in $(sed -nE 's/^COPY ([^-. ][^ ]*) .*/\1/p; s|^COPY --from=build /source/([^ ]+) .*|\1|p' "$file") meson.build meson_options.txt src proto deploy tests bench docs; do
    [ -e "$SKYCAP_ROOT/$path" ] || fails "$path" "is not there"
    while read -r pattern; do
        # shellcheck disable=SC2254 # a pattern is meant
        case $path in $pattern | $pattern/*) fails "$path" ".dockerignore leaves it out" ;; esac
    done < <(grep -v '^#' "$SKYCAP_ROOT/.dockerignore")
done

read -ra entry <<<"$(stage velero | sed -n 's/^ENTRYPOINT //p' | tr -d '[]",')"
check "the entry of the plugin's image" "${entry[0]} ${entry[1]}" "/skycap-velero install"
mkdir "$SKYCAP_TMP/target"
"$SKYCAP_BUILD/skycap-velero" "${entry[1]}" "$SKYCAP_TMP/target" >"$SKYCAP_TMP/installed" 2>&1 || fails "${entry[1]}" "$(cat "$SKYCAP_TMP/installed")"
check "what it installs" "$(ls "$SKYCAP_TMP/target")" skycap-velero
check "the entry of the image" "$(stage "" | sed -n 's/^ENTRYPOINT //p')" '["skycap"]'
finish
