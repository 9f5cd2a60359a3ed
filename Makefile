GO ?= go
TESTFLAGS ?=
PKG ?= ./...
FUZZTIME ?= 5s

# Binaries are static, and a cold build waits for no C compiler; the race detector alone wants one.
export CGO_ENABLED = 0
test-race: export CGO_ENABLED = 1

# Random tests draw from this seed, so that a run that was green stays so. test-deep and a plain `go test` draw new ones.
test test-race: export RAPID_SEED ?= 1

# The race detector watches a quarter of the random cases, the first of those that make test runs.
test-race: export RAPID_CHECKS ?= 25

# Tests wait for brokers, leases and disks: more of them at a time than there are cores.
TEST = $(GO) test -vet=off -p 4 -parallel 4

# The packages in which goroutines meet; natsjs and pebblestore stand for the broker and the disk. internal/test/lint has the rest.
RACE = ./shuffle/stage ./learner/service ./stream/device ./internal/test/campaign ./internal/run/many ./stream/natsjs \
	./state/pebblestore ./stream/device/filestore ./stream/device/httpgateway ./shuffle/split ./shuffle/helper \
	./internal/test/memory ./stream/relay ./stream/relayclient ./stream/grant/issuer ./learner/research/resque \
	./learner/task/draft/publicmodel ./internal/run/linkage

# What the two programs are built for beside Linux. Tests run on the system that they are started on, here Linux alone.
SYSTEMS = darwin/arm64 windows/amd64

.PHONY: help build test test-race test-deep fuzz lint systems release bench demo
help: ## what make does here
	@sed -n 's/^\([a-z-]*\): ## \(.*\)/\1\t\2/p' Makefile | expand -t 12

build: ## the two binaries, in bin/
	$(GO) build -o bin/ ./cmd/...

test: ## every package, or PKG=./stream/device/..., in minutes; lint has vet, test-race the race detector, test-deep the campaigns
	$(TEST) -timeout 20m $(TESTFLAGS) $(PKG)

# The tag gives Pebble its zstd in Go, as in our binaries, which have no C: compiling that C takes a sixth of the step's compiling.
test-race: ## the packages in which goroutines meet, with the race detector
	$(TEST) -race -tags pebblegozstd -timeout 20m $(TESTFLAGS) $(RACE)

test-deep: ## the long campaigns too: hours
	PANLEARN_DEEP=1 $(GO) test -v -timeout 6h $(TESTFLAGS) $(PKG)
	cd deploy/release && $(GO) test -v -timeout 3h .

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not gofmt-ed: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

systems: ## a type check of everything for SYSTEMS, with what is imported
	$(GO) run ./internal/test/systems $(SYSTEMS)

release: ## what VERSION=v0.1.0 is published as, in dist/; the checkout must have no changes
	cd deploy/release && $(GO) run . -version "$(VERSION)" -out ../../dist

bench: ## every benchmark, with allocations; then whole flows beside the raw broker (docs/measured/performance.md)
	$(GO) test -run '^$$' -bench . -benchmem $$($(GO) list ./... | grep -v internal/test)
	$(GO) test -run '^$$' -bench . -benchtime 6x -timeout 1h ./internal/test/flow

demo: ## everything in one process
	$(GO) run ./cmd/learner quickstart
