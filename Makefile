# Thin on purpose: each target is one call, and what it does is written where it is done.
# `make help` lists the targets.

# ONESHOT=1 makes `make run` stop by itself once everything is settled.
ONESHOT ?=
BENCH ?= scheduling

# Not `cargo xtask`: that would build half of the dependencies a second time, with the features that xtask alone needs.
XTASK = cargo build --locked --workspace --bin xtask && $(or $(CARGO_TARGET_DIR),target)/debug/xtask

.DEFAULT_GOAL := help
.PHONY: help build run test test-long bench control-plane tools dist

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1	\2/' | expand -t 22

build: tools ## Build the release binary, target/release/kerf
	cargo build --release --locked --package kerf

run: tools ## Start a local cluster with kerf and watch pods become nodes (ONESHOT=1: stop when settled)
	@$(XTASK) run $(if $(filter-out 0,$(ONESHOT)),--oneshot)

test: tools ## Run every check and every test
	@$(XTASK) test

test-long: tools ## Run what takes too long for every change: `make test` with the long tier
	@$(XTASK) test --long

bench: tools ## Measure against the numbers of docs/architecture.md (BENCH=scheduling)
	@$(XTASK) bench $(BENCH)

control-plane: tools ## Build the Kubernetes servers that tests and `make run` start, once
	@tests/tools/build.sh

tools: ## Say which tools are missing, and in which version they are wanted
	@.ci/tools

dist: tools ## Build what a release ships: programs, image, charts, manifests, policies, checksums
	@$(XTASK) dist
