GO ?= go
TESTFLAGS ?=
FUZZTIME ?= 5s

.PHONY: build test test-deep fuzz lint bench bench-go demo recording
build: ## the two binaries, in bin/
	$(GO) build -o bin/ ./cmd/...

test: ## every test, with the race detector
	$(GO) test -race -timeout 15m $(TESTFLAGS) ./...

test-deep: ## the long campaigns too: hours
	PANLEARN_DEEP=1 $(GO) test -v -timeout 6h $(TESTFLAGS) ./...

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not gofmt-ed: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

bench: ## how fast, as ratios to yardsticks measured beside (docs/performance.md); BENCHFLAGS=--json for machines
	$(GO) run ./internal/bench $(BENCHFLAGS)

bench-go: ## the benchmarks of the packages, allocations included
	$(GO) test -run '^$$' -bench . -benchmem ./...

demo: ## everything in one process
	$(GO) run ./cmd/learner quickstart

recording: ## the film of the quickstart and its text in README.md
	$(GO) run ./internal/recording
