# SPDX-License-Identifier: Apache-2.0
# The front door. Meson does the building; `make help` lists what can be asked for.

PYTHON      := /usr/bin/python3
BOOTSTRAP   ?= scripts/bootstrap
PREFIX      ?= /usr/local
PYTHON_DIR  ?= $(if $(filter /usr,$(PREFIX)),lib/python3,lib/$(shell $(PYTHON) -c \
	'import sys; print("python%d.%d" % sys.version_info[:2])'))/dist-packages
STOKER_DATA ?= $(CURDIR)/../shared/data
FUZZ_SECONDS ?= 60
STOKER      := $(CURDIR)/build/stoker
SETUP       ?=
ASAN_RUNS   ?= 25
SANITIZE    := -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debugoptimized --werror
# Timeouts are there for what never ends: on a machine that others use too everything may take long.
TEST        := meson test --print-errorlogs --no-rebuild --timeout-multiplier 5 --num-processes $(shell expr $$(nproc) + 2)

export STOKER STOKER_DATA
export PYTHONDONTWRITEBYTECODE := 1
export ASAN_OPTIONS ?= abort_on_error=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= halt_on_error=1:print_stacktrace=1

.PHONY: build help run sample bench-slurm bench-slurm-speed bench-slurm-day test test-plain test-digests test-python test-slurm test-newer-slurm test-web soak bench bench-store bench-openb bench-churn bench-fork bench-forecast bench-gang bench-victims bench-venus bench-scale bench-viewers bench-hostile bench-teams \
	asan fuzz fmt check check-sources clean install deb
.NOTPARALLEL:

build: ## compile into build/stoker (default)
	@$(BOOTSTRAP) build
	@[ -f build/build.ninja ] || meson setup build --buildtype=release $(SETUP)
	@ninja -C build

help: ## this list
	@awk -F ':.*## ' '/^[a-z].*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## start stoker on this machine, with its page; Ctrl-C stops it, jobs go on
	@build/stoker serve

sample: build ## simulate a sample day under three policies; writes build/sample-day.html
	@build/stoker sim --generate mix=sample,jobs=600,seed=1 --cluster 8x8 --compare fifo,sjf,default \
		--html build/sample-day.html

test: test-plain asan test-digests test-python test-web ## every test: plain, sanitized, three compilers, golden, end to end
	@echo "stoker: all tests passed"

test-plain: build
	@$(BOOTSTRAP) test
	@grep -q '"name": "tests", "value": "enabled"' build/meson-info/intro-buildoptions.json || \
		meson configure build -Dtests=enabled
	@ninja -C build
	@$(TEST) -C build --suite unit --suite property --suite fuzz --suite arch

asan: ## the C tests under AddressSanitizer and UBSan; ASAN_RUNS (25) random worlds of each kind
	@$(BOOTSTRAP) test
	@[ -f build-asan/build.ninja ] || CC=clang meson setup build-asan $(SANITIZE) -Dtests=enabled
	@ninja -C build-asan
	@STOKER_RUNS=$(ASAN_RUNS) $(TEST) -C build-asan --timeout-multiplier 15 --suite unit --suite property --suite fuzz

test-digests: build
	@$(BOOTSTRAP) test
	@scripts/golden-digests

test-python: build
	@$(BOOTSTRAP) test
	@scripts/test-python tests/slurm tests/crash tests/e2e tests/golden

test-slurm: build ## what talks to Slurm, with a whole Slurm cluster on this machine
	@$(BOOTSTRAP) test
	@scripts/test-python tests/slurm

test-newer-slurm: ## the same with the Slurm of a newer Debian, in a system of its own below build/newer
	@$(BOOTSTRAP) test
	@scripts/test-newer-slurm

test-web: build ## the dashboard in Chromium, against real daemons; pictures in build/web-shots
	@$(BOOTSTRAP) test
	@cd web && npx --no-install tsc
	@node --test --test-concurrency=2 --test-reporter=spec tests/web/*.test.mjs

soak: test-plain ## long runs: 10 minutes of each fuzzer, 5000 rounds of each property, 1000 sanitized, the package in a fresh Debian
	@$(MAKE) fuzz FUZZ_SECONDS=600
	@STOKER_RUNS=5000 $(TEST) -C build --timeout-multiplier 0 --suite property
	@$(MAKE) asan ASAN_RUNS=1000
	@STOKER_RUNS=1000 scripts/test-python tests/crash
	@STOKER_RUNS=200 STOKER_STEPS=20 scripts/test-python --dist load tests/slurm/test_random.py tests/slurm/test_random_bare.py tests/slurm/test_random_plugins.py
	@STOKER_SOAK=1 scripts/test-python tests/e2e/test_deb.py
	@TIDY_NODES=225000 scripts/check-tidy
	@echo "stoker: soak passed"

fuzz: ## run each fuzzer for FUZZ_SECONDS (60)
	@$(BOOTSTRAP) test
	@[ -f build-fuzz/build.ninja ] || CC=clang meson setup build-fuzz $(SANITIZE) -Dfuzz=true
	@ninja -C build-fuzz
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

bench: build ## speed, against named references measured in the same run
	@bench/run

bench-slurm: build ## jobs and submissions a second, beside Slurm on this machine
	@bench/slurm

bench-slurm-speed: build ## Slurm as the engine: starts, decisions and jobs a second, beside Slurm alone
	@bench/slurm-speed

bench-slurm-day: build ## a day of the Philly trace on a Slurm cluster: under Slurm, under stoker, in the simulator
	@bench/slurm-day

bench-store: build ## writing and opening the store, against plain SQLite
	@bench/store

bench-openb: build ## pods placed a second, filling a cluster
	@bench/openb

bench-gang: build ## placing gangs by topology, against looking at every rack
	@bench/gang

bench-victims: build ## who gives way, and how cheaply, against all sets and a plain search
	@bench/victims

bench-teams: build ## many teams: decisions a second, and one decision
	@bench/teams

bench-fork: build ## a fork of the core, against saving and loading it
	@bench/fork

bench-forecast: build ## forecasts of starts on public traces, against the mean of past waits
	@bench/forecast

bench-churn: build ## what fragments block while jobs come and go
	@bench/churn

bench-venus: ## the Venus trace with walls and with tenants: one JSON document
	@$(MAKE) build >&2
	@bench/venus

bench-viewers: build ## 200 people look on: what that costs a decision
	@bench/viewers

bench-hostile: build ## one user's worst requests: what others wait, and the daemon's memory
	@bench/hostile

bench-scale: build ## how time and memory grow with jobs and nodes
	@bench/scale

fmt: ## format the C sources in place
	@$(BOOTSTRAP) check
	@scripts/check-format --fix

check: build ## format, layers, purity, clang-tidy, cppcheck
	@$(BOOTSTRAP) check
	@$(TEST) -C build --suite arch
	@$(MAKE) check-sources
	@echo "stoker: all checks passed"

check-sources: # what reads sources and build/compile_commands.json, so it may run beside tests
	@scripts/check-format
	@scripts/check-tidy
	@scripts/check-cppcheck

install: build ## install under PREFIX (/usr/local); DESTDIR is honoured
	@meson configure build -Dprefix=$(PREFIX) -Dsysconfdir=/etc -Dlibexecdir=libexec \
		-Dpython_dir=$(PYTHON_DIR)
	@meson install -C build

deb: ## build the Debian package into build-deb/ (SETUP: options of meson setup)
	@$(BOOTSTRAP) deb
	@scripts/deb -- $(SETUP)

clean: ## remove every build folder
	rm -rf build build-asan build-fuzz build-o0 build-clang build-deb build-deb-test
