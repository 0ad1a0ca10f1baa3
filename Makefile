# nap: the targets below are all there is. `make help` lists them.
# Only Go, git and make are needed; everything else is built from source.

SHELL      := /bin/bash
GO         ?= go
# All modules name the Go release that they are built with; go fetches it where the
# machine has an older one, even where its settings forbid that.
export GOTOOLCHAIN := auto
BIN        := bin
NAP        := $(BIN)/nap
# Without symbols for debuggers a large test program links in half the time; traces have names as before.
GOTEST     := $(GO) test -shuffle=on -ldflags='-s -w'
LINT       := $(BIN)/golangci-lint
PACKAGES   ?= ./...
CROSS      ?= darwin/arm64 windows/amd64 linux/arm64
# The packages whose tests start whole labs. They run one after the other when all
# others are done: a control plane that shares two cores with linkers is slow. Within a
# package three labs run side by side, since they wait most of the time.
ON_LAB     := api/crds|charts|internal/armsim/kubelet|internal/lab/cloud|internal/lab/labtest

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/nap and bin/nap-controller (first time: 4 to 8 minutes on 2 cores).
	@[ -x $(NAP) ] || echo "Building bin/nap and bin/nap-controller; the first build takes 4 to 8 minutes on 2 cores, later ones seconds."
	@$(GO) build -o $(NAP) ./cmd/nap
	@$(GO) build -o $(BIN)/nap-controller ./cmd/nap-controller

.PHONY: cross
cross: ## Build both programs for other systems, below bin: CROSS='darwin/arm64 windows/amd64 linux/arm64' (first time: minutes each).
	@for s in $(CROSS); do echo "$$s"; \
	  GOOS=$${s%/*} GOARCH=$${s#*/} CGO_ENABLED=0 $(GO) build -o $(BIN)/$${s%/*}-$${s#*/}/ ./cmd/nap ./cmd/nap-controller || exit 1; done

# What is released is built like this: static, without paths of this machine.
VERSION    ?= $(shell git describe --tags --always 2>/dev/null || echo development)
# Charts need a semantic version.
CHART      ?= $(shell grep ^version: charts/nap/Chart.yaml | cut -d" " -f2)
RELEASE    ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
PACKAGE    := $(BIN)/package
define programs
	@for s in $(1); do echo "$$s"; \
	  GOOS=$${s%/*} GOARCH=$${s#*/} CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -buildid= -X main.version=$(VERSION)' \
	    -o $(BIN)/release/$${s%/*}-$${s#*/}/ ./cmd/nap ./cmd/nap-controller || exit 1; done
endef

.PHONY: $(PACKAGE)
$(PACKAGE):
	@cd tools/package && $(GO) build -o ../../$(PACKAGE) .

.PHONY: image
image: $(PACKAGE) ## Make bin/nap-image.tar, an OCI archive for linux/amd64 and linux/arm64, without a container engine.
	$(call programs,linux/amd64 linux/arm64)
	@$(PACKAGE) image -version $(VERSION) -out $(BIN)/nap-image.tar $(BIN)/release/linux-amd64 $(BIN)/release/linux-arm64

.PHONY: push
push: $(PACKAGE) ## Push bin/nap-image.tar to a registry: IMAGE=REGISTRY/nap:VERSION; prints the reference by digest.
	@$(PACKAGE) push $(BIN)/nap-image.tar $(IMAGE)

.PHONY: release
release: build $(PACKAGE) ## Make bin/dist: archives for linux, darwin and windows, kubectl-nap, charts, SBOM, checksums; RELEASE='linux/amd64 ...' for fewer.
	$(call programs,$(RELEASE))
	@rm -rf $(BIN)/dist $(BIN)/completions && mkdir -p $(BIN)/dist $(BIN)/completions
	@for s in bash zsh fish powershell; do $(NAP) completion $$s > $(BIN)/completions/nap.$$s || exit 1; done
	@for c in nap nap-crd; do $(GO) run ./charts/cmd/charts package charts/$$c --version $(CHART) --destination $(BIN)/dist || exit 1; done
	@$(PACKAGE) release -version $(VERSION) -out $(BIN)/dist -shell $(BIN)/completions -text LICENSE,README.md \
	  $(foreach s,$(RELEASE),$(BIN)/release/$(subst /,-,$(s)))

.PHONY: lab
lab: build ## Build bin/nap-lab: control plane, simulated Azure, scenarios (first time: 4 to 10 minutes more on 2 cores).
	@$(NAP) lab build

.PHONY: nap
nap: ## Build bin/nap alone, the command line.
	@$(GO) build -o $(NAP) ./cmd/nap

.PHONY: kubectl
kubectl: ## Build bin/kubectl, of the release that the lab's control plane is of (a minute beside nap-lab).
	@cd lab && $(GO) build -o ../$(BIN)/kubectl k8s.io/kubernetes/cmd/kubectl

.PHONY: demo
demo: lab ## Run the main job on an embedded control plane and a simulated Azure.
	@$(NAP) lab demo $(DEMO)

# Tests and their control planes are short programs with small heaps: with fewer rounds of
# the garbage collector they take a fifth less of the processor.
test: export GOGC := 300
.PHONY: test
test: lab ## Run every test: planner, controllers, simulated Azure, real control plane.
	@$(GO) vet ./...
	@$(GO) list $(PACKAGES) | grep -vE '/($(ON_LAB))$$' | xargs -r $(GOTEST) -vet=off -timeout 20m
	@$(GO) list $(PACKAGES) | grep -E '/($(ON_LAB))$$' | xargs -r $(GOTEST) -vet=off -p 1 -parallel 3 -timeout 30m
	@cd lab && $(GO) vet ./... && $(GOTEST) -vet=off ./...
	@cd tools/package && $(GO) vet ./... && $(GOTEST) -vet=off ./...

.PHONY: race
race: lab ## Run the tests of the main module under the race detector.
	@$(GOTEST) -race -timeout 60m $(PACKAGES)

.PHONY: race-stories
race-stories: lab ## Short scenarios with a controller that reports data races (5 minutes the first time on 2 cores; needs a C compiler).
	@$(GO) test -tags scale -count=1 -v -timeout 30m -run 'NoDataRace|RaceReports' ./internal/lab/cloud

.PHONY: scale
scale: lab ## 1,000 nodes with 10,000 pods, 1,000 pods up and down, a fleet that shrinks, upstream's engine, evicted AKS machines, nap savings on 2,000 nodes; prints the figures.
	@$(GO) test -timeout 30m -run '^$$' -bench ThousandNodes -benchtime 1x ./internal/armsim/kubelet
	@$(GO) test -timeout 30m -run '^$$' -bench SavingsOfLargeCluster -benchtime 1x ./internal/cli
	@$(GO) test -tags scale -v -timeout 30m -run 'Thousand|Upstream|Third|SpotAKS' ./internal/lab/cloud

.PHONY: race-karpenter
race-karpenter: lab ## Both engines do the same work in turns on one lab; prints medians and spread (hours); RACE='-only ^thousand -rounds 2' for less.
	@$(GO) run ./bench/cmd/race $(RACE)

.PHONY: tokens
tokens: lab ## Machines come and go for ten minutes while their bootstrap tokens live 60 s each; all join.
	@$(GO) test -tags scale -v -timeout 40m -run TenMinutes ./internal/lab/cloud

.PHONY: leader
leader: lab ## The leader of two replicas is killed five times, the other takes over within 20 s; the commands of docs/lab.md (minutes).
	@$(GO) test -tags scale -v -timeout 30m -run 'LeaderKilled|LabPage' ./internal/lab/cloud

.PHONY: leader-kills
leader-kills: lab ## The leader is killed or stopped 50 times under load: nothing is bought twice, the other acts within 20 s (half an hour); KILLS=10 for fewer.
	@LEADER_KILLS=$(or $(KILLS),50) $(GO) test -tags scale -count=1 -v -timeout 60m -run LeaderLostUnderLoad ./internal/lab/cloud

.PHONY: boots
boots: lab ## Machines whose provisioning fails: told within seconds, given back, bought no more (minutes).
	@$(GO) test -tags scale -v -timeout 20m -run BootFailures ./internal/lab/cloud

.PHONY: bill
bill: lab ## Ten minutes of load; the ledger must equal what the simulated Azure billed within 1 percent (15 minutes).
	@$(GO) test -tags scale -v -timeout 40m -run BillEqualsLedger ./internal/lab/cloud

.PHONY: shadow
shadow: lab ## Karpenter's own provisioner rules, and a shadow watches beside it: what nap would have cost (4 minutes).
	@$(GO) test -tags scale -v -timeout 20m -run Shadow ./internal/lab/cloud

.PHONY: gates
gates: lab ## Scenarios of feature gates that are off by default: NodeOverlay (a minute).
	@$(GO) test -tags scale -v -timeout 20m -run Overlays ./internal/lab/cloud

.PHONY: autoscalers
autoscalers: lab ## Scenarios with autoscalers of pods: HorizontalPodAutoscaler, KEDA's pattern, resize in place (6 minutes).
	@$(GO) test -tags scale -v -timeout 30m -run 'HorizontalPodAutoscaler|ScaledFromZero|ResizedInPlace' ./internal/lab/cloud

.PHONY: permissions
permissions: lab ## What the chart's roles permit is used, with every feature on (8 minutes).
	@$(GO) test -tags scale -v -timeout 20m -run 'PermissionIsUsed|UsesResourceClaims|AreListed|RareCases' ./internal/lab/cloud

.PHONY: agreement
agreement: lab ## Events, the snapshot, nap explain and nap plan say the same of pods, in many situations of one lab under faults of Azure (minutes).
	@$(GO) test -tags scale -count=1 -v -timeout 30m -run AllSayTheSame ./internal/lab/cloud

.PHONY: takeover
takeover: lab ## Helm's own list, upgrade, rollback and uninstall take over what nap enable has installed (first time: minutes).
	@cd tools/takeover && $(GO) vet ./... && $(GO) test -count=1 -v -timeout 20m ./...

.PHONY: networks
networks: lab ## The demo in each kind of network and with each way out of it (10 minutes).
	@$(GO) test -tags scale -v -timeout 40m -run DemoInEachNetwork ./internal/lab/cloud

.PHONY: disable
disable: lab ## nap disable and nap enable under load: no pod lost, no machine left (2 minutes).
	@$(GO) test -tags scale -v -timeout 20m -run DisableLosesNoPod ./internal/lab/cloud

.PHONY: enable
enable: lab ## nap enable in a cluster without nap, a pod on a bought machine within 90 s, and back (2 minutes).
	@$(GO) test -tags scale -v -timeout 20m -run EnableOnEmptyCluster ./internal/lab/cloud

.PHONY: upgrades
upgrades: lab ## Node images, Kubernetes and nap itself are upgraded within windows and budgets, and docs/upgrades.md is run (15 minutes).
	@$(GO) test -tags scale -count=1 -v -timeout 40m -run Upgrades ./internal/lab/cloud

.PHONY: stopped
stopped: ## Stop the leader of two controllers 50 times for longer than its lease; it must write nothing when it wakes (3 minutes).
	@NAP_LEADERS_ROUNDS=50 $(GO) test -count=1 -v -timeout 20m -run Stopped ./internal/controller/leadership

.PHONY: bench
bench: ## nap and Karpenter side by side in one run; BENCH='-write docs/benchmarks.md -date DAY' for the page.
	@$(GO) run ./bench/cmd/bench $(BENCH)

CONFORMANCE := $(BIN)/conformance/runner
.PHONY: $(CONFORMANCE)
$(CONFORMANCE):
	@mkdir -p $(BIN)/conformance && $(GO) build -o $(CONFORMANCE) ./bench/cmd/conformance

.PHONY: conformance-api
conformance-api: lab $(CONFORMANCE) ## Hold the definitions against the suites of Karpenter and its Azure provider (minutes); PROVIDER=CHECKOUT without a proxy.
	@$(CONFORMANCE) api -provider "$(PROVIDER)"

.PHONY: conformance
conformance: lab $(CONFORMANCE) ## All suites, of the definitions and then against labs (hours; resumes): FOCUS=REGEXP, SUITE=NAME, ENGINE=karpenter, LIMIT=1h.
	@$(CONFORMANCE) api -provider "$(PROVIDER)"; api=$$?; \
	  $(CONFORMANCE) cluster -suite "$(SUITE)" -engine "$(or $(ENGINE),nap)" -focus "$(FOCUS)" -limit "$(or $(LIMIT),0)" && exit $$api

.PHONY: bench-worst
bench-worst: ## Look for the pod that costs the planner most time; WORST='-tries 2000 -seed 1'.
	@$(GO) run ./bench/cmd/worst $(WORST)

.PHONY: bench-inputs
bench-inputs: build ## Time and memory of nap plan for files of 1.5 MB of many kinds (a minute); INPUTS='-write docs/scale.md' for the page, '-only tenants' for less.
	@$(GO) run ./bench/cmd/inputs $(INPUTS)

.PHONY: scale-memory
scale-memory: ## Memory per pod and node, and CPU of the planner up to 20,000 nodes (2 minutes); SCALE='-write docs/scale.md' for the page.
	@$(GO) run ./bench/cmd/scale $(SCALE)

.PHONY: idle
idle: ## CPU of a fleet at rest, and of one pod that waits there (a minute); IDLE='-write docs/scale.md' for the page.
	@$(GO) run ./bench/cmd/idle $(IDLE)

.PHONY: scale-objects
scale-objects: lab ## Both engines on clusters of 500 to 5,000 nodes as objects in a real API server (an hour); OBJECTS='-nodes 500 -engines nap', '-write docs/scale.md' for the page.
	@$(GO) run ./bench/cmd/objects $(OBJECTS)

.PHONY: mutants
mutants: ## Take single lines away and say which losses no test notices (hours for all); MUTANTS='-only launch -n 50 -seed 2'.
	@$(GO) run ./bench/cmd/mutants $(MUTANTS)

.PHONY: decisions
decisions: ## Record what the planner decides on 3,000 clusters, the workloads and the fleets; a diff shows what a change has changed.
	@mkdir -p $(BIN) && $(GO) run ./bench/cmd/decisions > $(BIN)/decisions.txt
	@mv $(BIN)/decisions.txt bench/decisions/testdata/decisions.txt

.PHONY: ablation
ablation: ## What each strategy and each search of the planner earns; ABLATION='-write docs/planner.md' for the page.
	@$(GO) run ./bench/cmd/ablation $(ABLATION)

.PHONY: near-tie
near-tie: ## What plans pay for fewer machines, with a disk in every price (a minute); NEARTIE='-write docs/planner.md' for the page.
	@$(GO) run ./bench/cmd/neartie $(NEARTIE)

.PHONY: judge-bootstrap
judge-bootstrap: ## Check what plain machines are told against the published contract of the node images.
	@$(GO) test -count=1 -run 'InContract|ContractsFields|Golden' ./internal/azure/bootstrap/

.PHONY: compare
compare: ## Times and memory of the planner, this code and commit BASE in turns; COMPARE='-write docs/planner.md' for the page.
	@$(GO) run ./bench/cmd/compare -base "$(BASE)" $(COMPARE)

.PHONY: lint
lint: $(LINT) ## Check style, the import law and dead code.
	@$(LINT) run $(PACKAGES)
	@cd lab && ../$(LINT) run --config ../.golangci.yml ./...
	@cd tools/package && ../../$(LINT) run --config ../../.golangci.yml ./...
	@$(MAKE) --no-print-directory deadcode

.PHONY: deadcode
deadcode: ## Look for functions that no program calls.
	@$(GO) test ./internal/arch -run TestNoFunctionIsDead

$(LINT): tools/go.mod tools/go.sum
	@echo "Building golangci-lint; about 4 minutes the first time."
	@cd tools && $(GO) build -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: generate
generate: ## Regenerate CRDs, deep copies and reference docs.
	@$(GO) generate ./...

.PHONY: clean
clean: ## Remove what the other targets made.
	@rm -rf $(BIN) .lab
