# The commands of this project; each says which tool it lacks.
SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make run    a control plane on this machine, Interlock guarding it, and an operator to try it on"
	@echo "make test   everything that CI runs (first time: about 20 minutes on two cores)"
	@echo "make soak   the long counts"
	@echo "make bench  measures, as ratios; writes target/bench/results.json"
	@echo "make lint   formatting, clippy, licences and sources of dependencies"

# The testbed and the crate are built one after the other: side by side, either takes three times as long.
.PHONY: testbed
testbed: tools
	@tests/testbed/build >/dev/null

.PHONY: tools
tools:
	@hack/tools

.PHONY: run
run: tools
	@hack/demo

.PHONY: test
test: testbed
	@echo "== build"
	cargo test --locked --no-run
	@echo "== tests"
	cargo test --locked --no-fail-fast

.PHONY: soak
soak: testbed
	INTERLOCK_SOAK=1 cargo test --locked --release -- --include-ignored
	@hack/image-check

.PHONY: bench
bench: tools
	@rm -f target/bench/results.json
	cargo bench --locked

.PHONY: lint
lint: tools
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	@hack/deny check bans licenses sources
