# The commands of this project; `make` alone lists them. Logic lives in hack/.
.DEFAULT_GOAL := help
.SUFFIXES:

# The version is what git says, or "unknown" where git may not be asked.
VERSION := $(or $(shell git describe --tags --always --dirty 2>/dev/null),unknown)
# sudo leaves the usual place of Go out of PATH.
export PATH := $(PATH):/usr/local/go/bin
export GOFLAGS := $(GOFLAGS) -buildvcs=false

# Without -trimpath, so that builds and tests share one build cache.
GO_BUILD = go build -ldflags '-s -w -X main.version=$(VERSION)'
FAST_PACKAGES = $(shell go list ./... | grep -v '/e2e\(/\|$$\)')

# A cluster of your own is used only where the call names it (make demo KUBECONFIG=…): what
# is installed there stays there, and a KUBECONFIG left in a shell is too easily forgotten.
ifneq ($(origin KUBECONFIG),command line)
unexport KUBECONFIG
endif

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: deps
deps: ## check the machine and install the Debian packages that are missing
	@hack/deps

.PHONY: build
build: ## build the three programs into bin/
	$(GO_BUILD) -o bin/hostwarrant ./signer
	$(GO_BUILD) -o bin/hostwarrant-webhook ./webhook
	$(GO_BUILD) -o bin/hostwarrant-relay ./relay

.PHONY: release
release: ## build what is released into dist/: static programs, the shim, sums (KEY=FILE signs them)
	@KEY='$(KEY)' hack/release

.PHONY: control-plane
control-plane: ## build etcd, kube-apiserver, kube-controller-manager and kubectl (once, cached)
	@e2e/cluster/build.sh

.PHONY: kubelet
kubelet: ## build kubelet, for tests with real nodes (once, cached)
	@e2e/cluster/build.sh --kubelet

.PHONY: demo
demo: deps build ## play the whole story on a real API server and real sshd hosts
	@go build -o bin/.demo ./e2e/demo && exec hack/with-control-plane --kubelet bin/.demo up

.PHONY: demo-down
demo-down: ## stop the demo and remove everything it made
	@go run ./e2e/demo down

.PHONY: test
test: deps ## run everything that CI runs: lint, fast tests, end-to-end tests
	@hack/test all

.PHONY: test-fast
test-fast: deps ## run the tests that need no cluster
	@hack/test fast

.PHONY: e2e
e2e: deps ## run the end-to-end tests only
	@hack/test e2e

.PHONY: e2e-ha
e2e-ha: deps build ## run the tests with counts in full: 10,000 applies while replicas are ended, 1,000 dry runs, 1,000 stored objects
	@E2E_FULL=1 hack/with-control-plane go test -count=1 -timeout 40m -v -run 'Replicas|TestAPolicy|TestLatency|TestDryRuns' ./e2e

.PHONY: e2e-minors
e2e-minors: deps ## run the admission tests on the API servers of three Kubernetes minors (built from source, once)
	@hack/minors

.PHONY: lint
lint: ## check format, vet, staticcheck, golangci-lint, shellcheck, imports, modules, generated files
	@hack/lint

.PHONY: generate
generate: ## regenerate deepcopy code and CRDs
	@hack/generate

.PHONY: mutants
mutants: deps ## delete each marked security check in turn; the fast tests must notice (ARGS='-run REGEX', '-list')
	@go run ./hack/mutants $(ARGS)

.PHONY: fuzz-shim
fuzz-shim: deps ## hold the shim's readers to the Go readers on 200,000 inputs under each shell, and the whole shim on 4,000 (N=, SEED=)
	@SHIM_FUZZ='$(or $(N),200000)' SHIM_FUZZ_SEED='$(SEED)' REQUIRE_TOOLS=1 go test -count=1 -timeout 12h -v -run MadeByChance ./shim

.PHONY: bench-shim
bench-shim: deps ## measure the shim against verify and bash alone, with its programs and syncs (ARGS='-runs N -shells LIST -profile')
	@go run ./hack/bench-shim $(ARGS)

.PHONY: bench-bundle
bench-bundle: ## measure verification and assembly of 3 to 10,000 signed fragments in one run, and count the API calls of a change (ARGS='-runs N')
	@go run ./hack/bench-bundle $(ARGS)
	@go test -count=1 -v -run TestAChangeOfAMemberTakesSixCalls ./webhook/bundles | sed -n 's/^.*go:[0-9]*: //p'

.PHONY: bench-relay
bench-relay: deps build ## measure the relay with 1,000 stand-ins of hosts and scripts of 3 s, then with 100 and 5,000 (HOSTS='100 1000')
	@for n in $(or $(HOSTS),1000 100 5000); do \
		BENCH_HOSTS=$$n hack/with-control-plane go test -v -count=1 -timeout 60m -run '^$$' -bench Relay -benchtime 1x ./e2e/flood || exit 1; done

.PHONY: race
race: ## run the fast tests under the race detector (needs gcc)
	CGO_ENABLED=1 go test -race $(FAST_PACKAGES)
