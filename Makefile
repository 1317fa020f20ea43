# Everything is built by SwiftPM; this file only remembers the commands. All paths are relative, so that the
# directory may be called anything, also with spaces.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
DESTDIR ?=
BINARY := .build/release/sinchctl

# The C++ library that Swift's own needs is linked statically, and no symbols are exported: that spares each command
# the look-up of some thousand symbols at its start, about a quarter of its time. Without the archive it stays shared.
RELEASE := -c release --static-swift-stdlib --product sinchctl --disable-local-rpath \
	-Xlinker --no-export-dynamic -Xlinker -L.build/static
STATIC_CXX = $(shell clang -print-file-name=libstdc++.a 2>/dev/null)

# A crash in a test prints its backtrace and ends; it does not wait for a debugger.
RUN_TESTS := SWIFT_BACKTRACE=enable=yes,interactive=no,color=no swift test --disable-xctest

.PHONY: help setup demo build test integration bench fuzz kamailio lint format docs install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install the Debian packages that a build needs
	@scripts/setup build

demo: build ## make a real call between two clients and check what each heard
	@scripts/demo

build: setup ## build .build/release/sinchctl
	@mkdir -p .build/static
	@if [[ -f "$(STATIC_CXX)" ]]; then ln -sf "$(STATIC_CXX)" .build/static/libstdc++.a; fi
	@swift build $(RELEASE)

test: ## run all tests
	@scripts/setup build test
	@scripts/test

integration: ## run only the tests with real devices and servers
	@scripts/setup build test
	@$(RUN_TESTS) --filter '^Integration\.'

bench: build ## measure, beside other programs; takes minutes and needs root
	@scripts/setup build bench
	@scripts/bench $(ARGUMENTS)

kamailio: ## run the engine for many users on loopback, for a try; ends with Ctrl-C
	@scripts/setup kamailio
	@deploy/kamailio/run --show-profile $(ARGUMENTS)

fuzz: ## give random bytes to all that reads the network, FUZZ_SECONDS (60) a target
	@scripts/setup build
	@scripts/fuzz $(TARGETS)

lint: ## check formatting and scripts
	@scripts/setup lint
	@scripts/lint

format: ## format all Swift files
	@swift format -i -r Package.swift Sources Tests Benchmarks Fuzz $(wildcard Examples)

docs: ## write man/, completions/ and docs/exit-codes.md from the command table
	@swift build --product sinchctl
	@scripts/docs .build/debug/sinchctl

install: ## install below PREFIX (/usr/local); DESTDIR is honoured
	@test -x $(BINARY) || { echo "install: $(BINARY) is missing; run 'make build' first" >&2; exit 1; }
	install -D -m 0755 $(BINARY) "$(DESTDIR)$(PREFIX)/bin/sinchctl"
	install -D -m 0644 man/sinchctl.1 "$(DESTDIR)$(PREFIX)/share/man/man1/sinchctl.1"
	install -D -m 0644 completions/sinchctl.bash "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/sinchctl"
	install -D -m 0644 completions/_sinchctl "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sinchctl"
	install -D -m 0644 completions/sinchctl.fish "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sinchctl.fish"

clean: ## remove what was built
	@rm -rf .build
