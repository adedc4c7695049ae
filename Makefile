# SPDX-License-Identifier: Apache-2.0
# Targets for people; `make help` lists them. Meson and ninja do the building.
#
#   T=part        run only the tests whose name has this part, e.g. make test T=stale-socket
#   V=1           show the output of every test
#   SAN=address   build and test with AddressSanitizer and UBSan; SAN=thread with ThreadSanitizer
#   CC=clang      another compiler; each combination has its own build directory
#   HTTP=ADDRESS  where `make run` serves the page, such as 127.0.0.1:9808; FLAGS= has more flags of it
#   IMAGE=name    of `make image`, with the registry: registry.example.com/skycap
#   DEPS=no       do not look for Debian packages (they are there, or this is another system)

SAN ?=
T ?=
V ?=
DEPS ?= yes
DESTDIR ?=
PREFIX ?= /usr/local
SECONDS ?= 300
IMAGE ?= skycap
HTTP ?= 127.0.0.1:0
FLAGS ?=

ifeq ($(origin CC),default)
CC := gcc
endif
BUILD := build$(if $(filter-out gcc,$(CC)),-$(notdir $(CC)))$(if $(SAN),-$(SAN))

SANITIZE_address := -Db_sanitize=address,undefined
SANITIZE_thread := -Db_sanitize=thread
ifneq ($(SAN),)
ifeq ($(SANITIZE_$(SAN)),)
$(error SAN=$(SAN) is not known; say SAN=address or SAN=thread)
endif
# Instrumented programs are slow: the tests get more time.
export TIME_FACTOR := 4
export ASAN_OPTIONS := detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS := print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS := halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=$(CURDIR)/tests/tsan-suppressions
endif
MESON_OPTIONS := -Dbuildtype=debugoptimized $(if $(SAN),$(SANITIZE_$(SAN)) -Db_lundef=false)

NEED := [ '$(DEPS)' = no ] || tools/install-packages

.DEFAULT_GOAL := help
.PHONY: help build run test sanitize fresh kubernetes check bench demo fuzz deb image install clean deps packages
MAKEFLAGS += --no-builtin-rules --no-print-directory

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@echo
	@sed -n 's/^#   \([A-Z]*=\)/  \1/p' Makefile

build: $(BUILD)/build.ninja ## build the program and its tests in build/
	@ninja -C $(BUILD) --quiet

# Only root can mount a pool, so only root needs the tools for one.
run: build ## build, then serve CSI on run/csi.sock with data in run/data (Ctrl-C stops it)
	@[ "$$(id -u)" != 0 ] || { $(NEED) run; }
	@mkdir -p run
	@[ -s run/token ] || (umask 077; head -c 24 /dev/urandom | base64 >run/token)
	$(BUILD)/skycap serve --endpoint unix://$(CURDIR)/run/csi.sock --data run/data --http $(HTTP) --http-token-file run/token --greet $(FLAGS)

test: build ## build, then run every test that can run here
	@$(NEED) test
	@[ "$$(id -u)" != 0 ] || tools/fresh --only base || true # for the test of the package
	@T='$(T)' V='$(V)' tests/run --build $(BUILD)

sanitize: ## run every test under AddressSanitizer and UBSan, then under ThreadSanitizer
	@failed=0; $(MAKE) test SAN=address || failed=1; $(MAKE) test SAN=thread || failed=1; exit $$failed

fresh: ## run `make run` and `make test` of the committed tree on a new, minimal Debian in a folder
	@$(NEED) fresh
	@tools/fresh

kubernetes: build ## give the manifests and the Helm chart to a real kube-apiserver; builds it first (15 minutes)
	@$(NEED) kubernetes
	@tests/peers/install --only apiserver
	@SKYCAP_BUILD=$(CURDIR)/$(BUILD) tests/kubernetes/run

check: build ## formatter, linters, layer rule, headers, licence lines, documents against the program
	@$(NEED) check
	@tools/check $(BUILD)

bench: build ## measure everything, next to other programs
	@$(NEED) bench
	@SKYCAP_BUILD=$(CURDIR)/$(BUILD) bench/run

demo: build ## a tour: create, publish, clone and snapshot a volume; as root also a cluster of two nodes
	@[ "$$(id -u)" != 0 ] || { $(NEED) demo; }
	@SKYCAP_BUILD=$(CURDIR)/$(BUILD) tools/demo
	@[ "$$(id -u)" != 0 ] || SKYCAP_BUILD=$(CURDIR)/$(BUILD) tools/demo-cluster

fuzz: packages ## fuzz every target for SECONDS (300) each
	@$(NEED) fuzz
	@SECONDS='$(SECONDS)' T='$(T)' tests/fuzz/run

deb: build ## make the Debian package skycap_VERSION_ARCHITECTURE.deb
	@tools/make-deb $(BUILD)

# The version is that of meson.build.
image: ## build the container images IMAGE:VERSION and IMAGE-velero:VERSION with podman or docker
	@tool=$$(command -v podman || command -v docker) || { echo "make image needs podman or docker" >&2; exit 2; }; \
	    version=$$(sed -n "s/^  version : '\(.*\)',/\1/p" meson.build); \
	    "$$tool" build -f deploy/Containerfile -t "$(IMAGE):$$version" . && \
	    "$$tool" build -f deploy/Containerfile --target velero -t "$(IMAGE)-velero:$$version" .

install: build ## install under PREFIX (/usr/local), inside DESTDIR if given
	@meson configure $(BUILD) -Dprefix='$(PREFIX)'
	@DESTDIR='$(DESTDIR)' meson install -C $(BUILD)

clean: ## remove the build directories (run/ holds your volumes: it stays)
	rm -rf build build-*

deps: ## install the Debian packages of all targets
	@$(NEED) build run test check bench

packages:
	@$(NEED) build

$(BUILD)/build.ninja: | packages
	@CC='$(CC)' meson setup $(BUILD) $(MESON_OPTIONS)
