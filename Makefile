# Two commands to know: `make demo` shows what Clarion does, `make test` checks that it does it.
# Long tests have targets of their own; `make test` runs a short form of each.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help demo test test-anytime lint check audit bench crash campaign simulation soak interop talk-off ears fuzz console-pictures setup release dist install deb

CARGO ?= cargo
CRASH_ROUNDS ?= 100
SIMULATION_HISTORIES ?= 100000
MODEL_CASES ?= 2000
SOAK_SECONDS ?= 600
SOAK_CALLS ?= 20000
OVERLOAD_SECONDS ?= 60
TALK_OFF_HOURS ?= 40
EARS_ROUNDS ?= 250
EARS_HOURS ?= 8
FUZZ_SECONDS ?= 300
INTEROP_ROUNDS ?= 50

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: ## Install missing packages on a Debian machine (only names them when not root)
	@scripts/setup

demo: ## Show the whole job on this machine: server, account, request, crash, restart, bill
	@scripts/setup demo
	@$(CARGO) build --quiet --package clarion
	@target/debug/clarion demo

test: setup lint check ## Lint, and run all tests, with PostgreSQL and real clients

check: ## The tests without the linters
	scripts/with-postgres scripts/run-tests
	scripts/test-anytime short
	scripts/fuzz-smoke

test-anytime: setup ## The tests at other hours and dates, in other zones, on a busy machine (ROUNDS="hour busy", RESUME=1)
	scripts/test-anytime $(if $(RESUME),--resume) $(ROUNDS)

lint: ## Formatting, clippy, links; no import cycle, doubled type name, stale document, or dependency without a reason
	$(CARGO) fmt --all --check
	scripts/judge-dependencies
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --quiet
	RUST_BACKTRACE=0 $(CARGO) test --workspace --quiet --no-fail-fast --test architecture --test documents

audit: ## Licences, sources, doubled versions and known vulnerabilities by cargo-deny, which it builds first (minutes)
	scripts/audit

release: ## The one program, quickly built, to try and measure: target/release/clarion
	$(CARGO) build --release --locked --package clarion

dist: ## The one program for use, optimised as a whole and stripped: target/package/clarion, with clarion.debug beside it
	$(CARGO) build --profile dist --locked --package clarion
	packaging/split-debug target/dist/clarion target/package

install: dist ## Install it as a service on this machine (docs/operating.md)
	packaging/install

deb: dist ## Debian packages of it and of its debug information, in target/
	packaging/build-deb

# The parts of `make bench`, in their order, and what each runs under. `make bench neighbours` measures that part only.
BENCH_PARTS := calls accepts job backlog nodes sound voices bills neighbours console
bench_parts = $(filter $(BENCH_PARTS),$(MAKECMDGOALS))
WITH_STATEMENTS := POSTGRES_OPTIONS="-c shared_preload_libraries=pg_stat_statements" scripts/with-postgres
$(foreach part,accepts backlog bills neighbours console,$(eval under_$(part) := scripts/with-postgres))
$(foreach part,job nodes,$(eval under_$(part) := $$(WITH_STATEMENTS)))
options_voices = $(if $(NATURAL), --natural $(NATURAL))
define measure
$(under_$(1)) target/dist/clarion-bench $(1)$(options_$(1)) --write-table docs/measured.md

endef
comma := ,
space := $(subst ,, )
compared = $(if $(bench_parts),--workloads $(subst $(space),$(comma),$(strip $(bench_parts))))

bench: setup ## Measure all, or the parts named behind it, and write docs/measured.md; with BASE=commit compare this tree with that commit instead
ifdef BASE
	scripts/bench-compare $(BASE) $(compared) --write-table docs/measured.md $(BENCH_OPTIONS)
else
	$(CARGO) build --profile dist --workspace
	$(foreach part,$(or $(bench_parts),$(BENCH_PARTS)),$(call measure,$(part)))
endif

# Named alone, a part is measured too.
.PHONY: $(BENCH_PARTS)
$(BENCH_PARTS): bench
	@:

crash: setup ## Kill the server (-9) under load and with calls in every state: a hundred rounds on each database and with two nodes
	CRASH_ROUNDS=$(CRASH_ROUNDS) scripts/with-postgres $(CARGO) test --package clarion --test it -- crash:: lives:: --nocapture

campaign: setup ## A thousand faults of every kind on each database, while clients place calls (RESUME=1)
	scripts/campaign $(if $(RESUME),--resume) $(SETUPS)

simulation: setup ## Simulate a hundred thousand histories of dispatch with faults, and compare the databases with the model of the queue at length
	SIMULATION_HISTORIES=$(SIMULATION_HISTORIES) SIMULATION_FROM=$(SIMULATION_FROM) SIMULATION_SEED=$(SIMULATION_SEED) SIMULATION_THREADS=$$(nproc) \
	  MODEL_CASES=$(MODEL_CASES) scripts/with-postgres $(CARGO) test --profile simulation --package clarion --test simulation -- \
	  --nocapture --test-threads 1 $(if $(SIMULATION_SEED),whatever)

soak: setup ## Run twenty thousand calls, a minute of overload and ten minutes of load: no leaks, flat memory, bounded log
	LEAK_CALLS=$(SOAK_CALLS) $(CARGO) test --package phone --test leak -- --nocapture
	LONG_MINUTES=10 $(CARGO) test --package phone --test it long:: -- --nocapture
	OVERLOAD_SECONDS=$(OVERLOAD_SECONDS) $(CARGO) test --package clarion --test it overload:: -- --nocapture
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --package clarion --test it soak:: -- --nocapture

interop: setup ## Calls through Kamailio, fifty of each kind: every transport, encryption, forking, hold, changes before the answer, a dead far end
	INTEROP_ROUNDS=$(INTEROP_ROUNDS) $(CARGO) test --package phone --test it kamailio:: -- --nocapture

talk-off: setup ## Listen for keys in forty hours of speech: none may be heard
	TALK_OFF_HOURS=$(TALK_OFF_HOURS) $(CARGO) test --package phone --test talk_off -- --nocapture

ears: setup ## Tell persons, machines and tones apart in a thousand calls, and hear eight hours of speech without a tone
	EARS_ROUNDS=$(EARS_ROUNDS) EARS_HOURS=$(EARS_HOURS) $(CARGO) test --package phone --test ears -- --nocapture --test-threads 1

console-pictures: setup ## Take pictures of every screen of the console, in both languages and colours and three widths: target/console-pictures
	CONSOLE_PICTURES=$(CURDIR)/target/console-pictures scripts/with-postgres $(CARGO) test --package clarion --test it -- console::browser::every_screen

fuzz: setup ## Run each fuzz target for five minutes
	scripts/fuzz-smoke $(FUZZ_SECONDS)
