# The commands of this project; each says which tool it lacks.
SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make run    a control plane on this machine, Interlock guarding it, and an operator to try it on"
	@echo "make test   everything that CI runs (about half an hour on two cores once built)"
	@echo "            KUBERNETES=1.33: on that one in place of the newest; they are in tests/testbed/versions"
	@echo "make check  formatting, clippy, and the tests of what decides: about a minute and a half once built"
	@echo "make soak   the long counts"
	@echo "make fuzz   twenty minutes of libFuzzer: reviews, router flavors, templates, YAML"
	@echo "make bench  measures, as ratios; writes target/bench/results.json"
	@echo "make lint   formatting, clippy, licences and sources of dependencies"

# Of the control plane that everything runs on; the newest where it is empty.
export INTERLOCK_KUBERNETES := $(or $(KUBERNETES),$(INTERLOCK_KUBERNETES))

# These and the crate are built one after the other: side by side, each takes three times as long.
.PHONY: testbed
testbed: tools
	@tests/testbed/build >/dev/null

.PHONY: peers
peers: testbed
	@tests/peers/kudo/build >/dev/null
	@tests/peers/kstatus/build >/dev/null
	@tests/peers/gotemplate/build >/dev/null
	@tests/peers/strategicmerge/build >/dev/null
	@tests/peers/helm/build >/dev/null
	@tests/peers/promtool/build >/dev/null
	@tests/peers/envoy/build >/dev/null
	@tests/peers/envoygateway/build >/dev/null
	@tests/peers/limitador/build >/dev/null

.PHONY: tools
tools:
	@hack/tools

.PHONY: run
run: tools
	@hack/demo

# Cases on a control plane wait more than they compute, so five run at a time on two cores, and of those with pods and a
# network three, beside the decisions, which take what these leave. The other suites measure time, and run as many as
# there are cores.
DECISIONS := -p crd-schema -p gateway-policies -p go-template -p interlock-core -p interlock-gateway -p interlock-guard -p interlock-kong -p interlock-kudo
FEATURES := interlock/pod-proxy,interlock-kong/exploration
PACKAGES := $(DECISIONS) -p add-a-kind -p interlock --features $(FEATURES)
SUITES := $(filter-out e2e service_path,$(patsubst tests/%/main.rs,%,$(wildcard tests/*/main.rs)))
# libtest says how long a case took only where it takes the compiler for a nightly one.
HOST = $(shell rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
TIMED := -- -Zunstable-options --report-time
.PHONY: test
test: export CARGO_TARGET_$(HOST)_RUNNER := env RUSTC_BOOTSTRAP=1
test: peers
	@echo "== build"
	@rm -rf target/test-logs && mkdir -p target/test-logs
	@began=$$(date +%s) && cargo test --locked $(PACKAGES) --no-run && echo "build $$(($$(date +%s) - began))" > target/test-logs/parts
	@echo "== tests"
	@set -o pipefail; \
	run() { \
		log=target/test-logs/$$1; shift; began=$$(date +%s); \
		cargo test --locked $(PACKAGES) --no-fail-fast "$$@" 2>&1 | tee $$log || touch target/test-logs/.failed; \
		echo "$${log##*/} $$(($$(date +%s) - began))" >> target/test-logs/parts; \
	}; \
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) * 5 / 2))} run e2e --test e2e $(TIMED); \
	(renice -n 5 -p $$BASHPID >/dev/null; run unit --lib --bins $(TIMED)) & \
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) * 3 / 2))} run service_path --test service_path $(TIMED); \
	wait; \
	run suites $(addprefix --test ,$(SUITES)) --test commands --test conformance --test envoy --test properties --test recorded --test scale $(TIMED); \
	run doc --doc; \
	hack/times target/test-logs; \
	[ ! -e target/test-logs/.failed ] || { hack/failures target/test-logs/*; exit 1; }

# What an edit of a decision needs: seconds for one crate once built, about a minute and a half with everything.
.PHONY: check
check:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	cargo test --locked -q $(DECISIONS)

.PHONY: soak
soak: peers
	INTERLOCK_SOAK=1 cargo test --locked --release $(PACKAGES) --no-fail-fast -- --include-ignored
	@hack/image-check

# Coverage-guided; needs the nightly toolchain and cargo-fuzz (`cargo install --locked cargo-fuzz`). Of templates
# and YAML an input may take 256 MiB and 2 s, so they run without a sanitizer, which would take more by itself.
# INTERLOCK_FUZZ_SECONDS is for each of the four.
FUZZ_SECONDS := $(or $(INTERLOCK_FUZZ_SECONDS),300)
FUZZ_BOUNDED := -rss_limit_mb=256 -malloc_limit_mb=256 -timeout=2 -max_len=8192 -dict=fuzz/template.dict
.PHONY: fuzz
fuzz: tools
	mkdir -p $(addprefix target/fuzz-corpus/,review flavor template yaml)
	cargo +nightly fuzz run review target/fuzz-corpus/review fuzz/seeds/review -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536
	cargo +nightly fuzz run flavor target/fuzz-corpus/flavor fuzz/seeds/flavor -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536
	cargo +nightly fuzz run --sanitizer none template target/fuzz-corpus/template fuzz/seeds/template -- -max_total_time=$(FUZZ_SECONDS) $(FUZZ_BOUNDED)
	cargo +nightly fuzz run --sanitizer none yaml target/fuzz-corpus/yaml fuzz/seeds/yaml -- -max_total_time=$(FUZZ_SECONDS) $(FUZZ_BOUNDED)

# The process is measured beside 10,000 Instances, and 1,000 go through a plan; INTERLOCK_BENCH_INSTANCES
# and INTERLOCK_BENCH_PLANS say other numbers. It is the static binary of the image, a plain release build.
.PHONY: bench
bench: peers
	@rm -f target/bench/results.json
	hack/static target/bench/interlock
	INTERLOCK_BINARY=$$PWD/target/bench/interlock cargo bench --locked
	cargo run --locked --release -p interlock-https

.PHONY: lint
lint: tools
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	@hack/deny check bans licenses sources
