# Every habit of this project is a target; `make help` lists them from the comments behind their names.

.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The commit's date, so that the same source makes the same binary. A clock before it cannot be right.
BUILT    ?= $(shell git log -1 --format=%cI 2>/dev/null)
FUZZTIME ?= 20s
TIMEOUT  ?= 12m

# The race detector looks at every package but SQLite itself, which is C turned into Go: watching each of its memory accesses finds nothing of
# ours and makes a test of the store four times as slow.
RACE := -race $(foreach p,modernc.org/sqlite/lib modernc.org/libc,-gcflags=$(p)=-race=false)

# The linter is built into .tools, so that its dependencies stay out of go.mod.
LINT_VERSION := v2.15.0
LINT_DIR     := $(CURDIR)/.tools/golangci-lint-$(LINT_VERSION)
LINT         := $(LINT_DIR)/golangci-lint

# Names under which the browser tests find a browser.
BROWSERS := headless-shell chromium chromium-browser google-chrome google-chrome-stable chrome

# A test needs what a bare machine may lack. $(call need,any of these commands,Debian packages,what for) does nothing when a
# command is there, installs the packages when it may, and otherwise says what to install.
define need
@for c in $(1); do command -v $$c >/dev/null 2>&1 && exit 0; done; \
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	echo "installing $(2) ($(3))" && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2); \
else \
	echo "make: $(3) need one of: $(1). Install it (Debian: apt-get install $(2)) and run make again." >&2; exit 1; \
fi
endef

.PHONY: help run build test beside lint fuzz bench chaos chaos-long mutants chaosneeds generate needs

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: build ## Build, then start the demo on 127.0.0.1:7678
	bin/posthorn demo

build: ## Build the static binary bin/posthorn
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION) -X main.built=$(BUILT)" -o bin/posthorn .

test: needs ## Vet and test everything under the race detector (installs chromium, nginx and gcc where missing, as root)
	go vet ./...
	go test $(RACE) -shuffle=on -timeout $(TIMEOUT) ./...

needs:
	$(call need,gcc clang,gcc libc6-dev,tests under the race detector)
	$(call need,$(BROWSERS),chromium,browser tests)
	$(call need,nginx /usr/sbin/nginx,nginx,tests of live updates behind a proxy)
	$(call need,python3,python3,tests of the contract from Python)
	$(call need,sqlite3,sqlite3,tests of the contract from the shell)
	$(call need,php,php-cli php-sqlite3,tests of the contract from PHP)

beside: build ## Test the contract from Node, and measure what an application notices of Posthorn beside it (COUNT messages, default 100000; RATE transactions a second, default as fast as they go)
	cd outbox/examples/node && { [ -d node_modules/better-sqlite3/build ] || npm ci --no-audit --no-fund; }
	go test -tags beside -count=1 -run TestStagingFromNode ./app
	python3 app/bench/beside.py bin/posthorn --count $(or $(COUNT),100000) $(if $(RATE),--rate $(RATE) --turn $(RATE))

lint: $(LINT) ## Run the pinned golangci-lint
	$(LINT) run ./...

$(LINT):
	GOBIN=$(LINT_DIR) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

fuzz: ## Run every fuzz target in turn, FUZZTIME each (default 20s)
	@set -eu; for pkg in $$(go list ./...); do \
		list=$$(go test -list '^Fuzz' "$$pkg"); \
		for target in $$(echo "$$list" | grep '^Fuzz' || true); do \
			echo "fuzz $$pkg $$target for $(FUZZTIME)"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
		done; \
	done

bench: build ## Build, then measure this machine
	bin/posthorn bench

chaos: chaosneeds ## Prove delivery under kills, power cuts and every fault that this machine lets it cause, within ten minutes
	go run ./app/chaos

chaos-long: chaosneeds ## The same for hours
	go run ./app/chaos --profile long

mutants: chaosneeds ## Break the code in one place at a time, and see the test or the fault that should catch it do so
	go run ./app/mutants/run
	go run ./app/chaos --mutants

# What only root can use is installed for root only; without it the faults that need it are reported as not run.
chaosneeds:
	@[ "$$(id -u)" != 0 ] || { command -v strace && command -v mkfs.xfs; } >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1 || { \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends strace xfsprogs; } || true

generate: ## Remake the generated files (the library's copy of its part of schema.sql)
	go generate ./...
