# Fairlead: `make` prints this help.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3.11
BIN := .venv/bin
FAIRLEAD_HOME ?= .fairlead
export FAIRLEAD_HOME
# Where it is set, each of the thousands of processes of a test run would compile the same sources.
unexport PYTHONDONTWRITEBYTECODE
# Each suite keeps what failed and how long its tests took to itself, so that several run side by side.
PYTEST = $(BIN)/python -m pytest -p tests.suites.timings --timings build/suites/$@.json -o cache_dir=.pytest_cache/$@

.PHONY: help
help: ## print this help
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use it
.PHONY: demo up clean
demo: setup ## a canary that promotes itself, a failing and a mistaken one that roll back (ONCE=1: exit after it)
	@$(BIN)/fairlead demo $(if $(ONCE),--once)

up: setup ## start the platform, empty
	@$(BIN)/fairlead up

clean: ## remove what the other targets made, .fairlead/ included
	rm -rf .venv .fairlead frontend/node_modules frontend/dist build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .fuzz

##@ Set it up
.PHONY: setup setup-dev deps lock
setup: .venv/.base frontend/dist/.built ## the virtual environment in .venv/ and the front-end bundle

setup-dev: .venv/.dev frontend/dist/.built ## setup, and the tools of check and test

deps: ## the Debian packages for the full test suite (needs root)
	@.ci/deps

lock: .venv/.dev ## pin the Python dependencies anew
	PATH="$(CURDIR)/$(BIN):$$PATH" requirements/lock.sh

.venv/.python:
	@command -v $(PYTHON) >/dev/null || { echo "Fairlead needs Python 3.11 or later; $(PYTHON) was not found. Install it, or name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Fairlead needs Python 3.11 or later; $(PYTHON) is {sys.version.split()[0]}")'
	@echo "Making the virtual environment .venv/"
	@$(PYTHON) -m venv .venv || { echo "$(PYTHON) -m venv failed; on Debian install python3-venv." >&2; exit 1; }
	@touch $@

.venv/.base: .venv/.python requirements/base.txt pyproject.toml
	@$(BIN)/python requirements/install.py requirements/base.txt "Installing Python packages into .venv/"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: .venv/.base requirements/dev.txt
	@$(BIN)/python requirements/install.py requirements/dev.txt "Installing the development tools into .venv/"
	@touch $@

frontend/dist/.built: .venv/.base frontend/package-lock.json $(shell find frontend/src frontend/styles frontend/static frontend/*.json frontend/*.mjs -type f 2>/dev/null)
	@echo "Building the front end"
	@$(BIN)/python frontend/build.py
	@touch $@

##@ Ship it
.PHONY: package images release verify-release
PACKAGES ?= dist
package: .venv/.base ## the wheel and the source archive of command line and serving runtime, in dist/
	@$(BIN)/python -m hatchling build --directory $(PACKAGES)

IMAGES ?= control-plane one-machine runtime-cpu
IMAGE_TAG ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# Where pip finds packages is as in the shell that builds.
FROM_SHELL = $(foreach name,PIP_INDEX_URL PIP_EXTRA_INDEX_URL,$(if $($(name)),--build-arg $(name)))
BUILD_ARGUMENTS = $(FROM_SHELL) $(if $(MORE),--build-arg MORE="$$(cat $(MORE))")
images: ## the container images (IMAGES="control-plane one-machine runtime-cpu runtime-cuda", IMAGE_TAG=VERSION, MORE=LOCK)
	@for target in $(IMAGES); do \
		case $$target in \
			runtime-cpu) image=serving-runtime:$(IMAGE_TAG) ;; \
			runtime-*) image=serving-runtime:$(IMAGE_TAG)-$${target#runtime-} ;; \
			*) image=$$target:$(IMAGE_TAG) ;; \
		esac; \
		docker build $(DOCKER_BUILD_OPTIONS) $(BUILD_ARGUMENTS) --file docker/Dockerfile --target $$target --tag fairlead/$$image . || exit 1; \
	done

OUT ?= build/release
DIR ?= $(OUT)
REGISTRY ?= fairlead
RELEASE_OPTIONS = $(if $(RELEASE_KEY),--key "$(RELEASE_KEY)") $(if $(IMAGE_DIGESTS),--digests "$(IMAGE_DIGESTS)")
release: setup-dev ## packages, charts, images, bills, provenance and sums of the commit, in OUT=build/release (RELEASE_KEY=PEM, REGISTRY=NAME, IMAGE_DIGESTS=FILE)
	@$(BIN)/python -m releases make --out "$(OUT)" --registry "$(REGISTRY)" --images "$(IMAGES)" $(RELEASE_OPTIONS) --image-options="$(FROM_SHELL) $(DOCKER_BUILD_OPTIONS)"

verify-release: setup-dev ## whether the files in DIR=build/release are a release (RELEASE_PUBLIC_KEY=PEM: who signed it; REBUILD=1: build it again and compare)
	@$(BIN)/python -m releases verify "$(DIR)" $(if $(RELEASE_PUBLIC_KEY),--public-key "$(RELEASE_PUBLIC_KEY)") $(if $(REBUILD),--rebuild)

##@ Work on it
.PHONY: check golden pictures test test-sqlite test-browser test-cluster test-images test-keycloak test-long suites bench fuzz
check: setup-dev ## format, lint, types, import contracts, front end
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	FAIRLEAD_SECRET_KEY=for-the-type-checker-only $(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/nets/test_words.py
	$(BIN)/python frontend/build.py --check

# In CI what failed runs once more, alone: a machine that was busy for a moment refuses no change, what fails twice does,
# and the first failure stays in the output. Where more than three failed, the machine is not to blame.
once_more = $(if $(CI),|| { .ci/few-failed $@ 3 && $(1) --once-more --last-failed --last-failed-no-failures none; })

# Many tests wait for real servers; a file's tests stay together, since they share those. Of a whole suite what takes long begins.
TOGETHER := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
IN_ORDER := $(TOGETHER) -p tests.suites.order

ON_SERVERS = $(if $(SQLITE),,$(BIN)/python -m tests.servers)
ELSEWHERE := tests/browser/% tests/cluster/% tests/keycloak/%
IN_TIME := $(if $(CI), and not long)
EVERYWHERE = $(ON_SERVERS) $(PYTEST) -m "not browser and not cluster and not images and not keycloak$(IN_TIME)"
test: setup-dev ## the whole Python suite, end-to-end tests included, on a PostgreSQL and a Redis of their own (SQLITE=1: on neither; CHANGED=1: what your change can affect; FILE="tests/a/test_b.py::test_c …")
ifdef FILE
	$(if $(filter tests/cluster/%,$(FILE)),@$(BIN)/python -m tests.cluster.binaries)
	$(if $(filter $(ELSEWHERE),$(FILE)),,$(ON_SERVERS)) $(PYTEST) $(FILE) $(if $(word 2,$(FILE)),$(TOGETHER))
else ifdef CHANGED
	@$(BIN)/python -m tests.affected $(CHANGED) --run $(EVERYWHERE) $(TOGETHER)
else
	$(EVERYWHERE) $(IN_ORDER) $(call once_more,$(EVERYWHERE))
endif

ON_SQLITE = $(PYTEST) -m "sqlite$(IN_TIME)" $$($(BIN)/python -m tests.sqlite_pass)
test-sqlite: setup-dev ## what databases and brokers do differently, on SQLite and the broker in the file system, as `make up` has them
	$(ON_SQLITE) $(IN_ORDER) $(call once_more,$(ON_SQLITE))

GOLDEN := tests/charts/test_render.py $(addprefix tests/integrations/clusters/,kubernetes/test_manifests.py kubernetes/test_replay_manifests.py local/envoy/test_golden.py)
golden: setup-dev ## write the golden files again, after a wanted change of what is rendered, of what pages say or of names that others know
	FAIRLEAD_UPDATE_GOLDEN=1 $(PYTEST) $(GOLDEN) tests/test_copy.py -m "not cluster" -k "as_it_was_rendered or pages_say"
	FAIRLEAD_UPDATE_GOLDEN=1 $(PYTEST) tests/nets

test-browser: setup-dev ## the pages in a real Chromium
	$(PYTEST) tests/browser -m browser $(TOGETHER) $(call once_more,$(PYTEST) tests/browser -m browser)

pictures: setup-dev ## every page in every state as pictures in build/screenshots/pages/ (ONLY=rollout-detail: those alone)
	FAIRLEAD_SCREENSHOTS="$${FAIRLEAD_SCREENSHOTS:-$(CURDIR)/build/screenshots}" $(PYTEST) tests/browser/test_every_page.py -m browser $(TOGETHER) -k "holds_for_everybody and ($(or $(ONLY),-))"

# Not all files, whose collection takes each process half a minute. Once more come whole files: the tests of one may follow
# each other on one cluster.
CLUSTER_TESTS = $(PYTEST) -m "cluster$(IN_TIME)"
test-cluster: setup-dev ## the Kubernetes driver on a real control plane and Envoy Gateway, which are built once (Go, ten minutes each)
	@$(BIN)/python -m tests.cluster.binaries
	$(CLUSTER_TESTS) $$(grep -rlE 'mark\.cluster|\banywhere\b' tests --include='test_*.py') $(IN_ORDER) \
	$(if $(CI),|| { files=$$(.ci/few-failed --files $@ 2) && echo "$$files" && $(CLUSTER_TESTS) --once-more $$files; })

# A suite's output comes when it ends, and make's last lines name the suites that failed.
# Two at a time: the long one, a third of which waits for whole platforms, and the others beside it.
SUITES := check test test-browser test-cluster test-sqlite
SIDE_BY_SIDE ?= 2
suites: setup-dev ## all suites, SIDE_BY_SIDE=2 at a time (1: on one core), and a table of their times
	@rm -rf build/suites
	@$(BIN)/python -m tests.suites.progress & progress=$$!; trap 'kill $$progress' EXIT; failed=0; \
	$(MAKE) --no-print-directory --jobs=$(SIDE_BY_SIDE) --keep-going --output-sync=target $(SUITES) || failed=$$?; \
	$(BIN)/python -m tests.suites.table; exit $$failed

# Not in .ci/run: a first build takes ten minutes, and few machines let a test start a Docker engine.
test-images: setup-dev ## the container images, built and run on a Docker engine (root: one of their own; IMAGES as of images)
	IMAGES="$(IMAGES)" FAIRLEAD_TEST_NETWORK=machine $(PYTEST) tests/docker

# Not in .ci/run: minutes each. On SQLite too, what is in its list.
test-long: setup-dev ## what takes too long for each change: deaths at every line, formats of other libraries, examples, and more on a cluster
	@$(BIN)/python -m tests.cluster.binaries
	$(ON_SERVERS) $(PYTEST) -m long $$(grep -rlE 'mark\.long|LONG_ON_KUBERNETES' tests --include='test_*.py') $(TOGETHER)
	$(PYTEST:$@.json=$@-sqlite.json) -m "sqlite and long" $$($(BIN)/python -m tests.sqlite_pass) $(TOGETHER)

# Not in .ci/run: it needs Java and Maven, which fetches Keycloak once.
test-keycloak: setup-dev ## sign-in, removal of people and tokens of callers against a real Keycloak
	$(PYTEST) tests/keycloak -m keycloak -p no:xdist

bench: setup-dev ## Fairlead beside its peers and the limits, on two cores (QUICK=1: eleven minutes; ONLY="fairlead triton"; POINTS=image_mean/json; RECORD=1: keep as the figures to compare with)
	@$(BIN)/python -m benchmarks.serving $(if $(QUICK),--quick) $(if $(RECORD),--record) $(if $(ONLY),--only $(ONLY)) $(if $(POINTS),--points $(POINTS))

.PHONY: bench-fairness
bench-fairness: setup-dev ## a polite client alone, beside a greedy one as one caller, and as two (a minute)
	@$(BIN)/python -m benchmarks.serving.fairness

.PHONY: bench-scale
bench-scale: setup-dev ## turns of services in rollout on clusters that answer after 4, 30 and 100 ms (six minutes; ARGS="--clusters 12 --rolling 300"; ARGS=--real: on Kubernetes' own API server)
	@$(BIN)/python -m benchmarks.scale.turns $(ARGS)

.PHONY: bench-pools
bench-pools: setup-dev ## what a pool costs warm requests and cold ones, beside Triton; 10,000 models on this machine, 100,000 simulated (QUICK=1: 5 minutes)
	@$(BIN)/python -m benchmarks.pools $(if $(QUICK),--rounds 4)
	@$(BIN)/python -m benchmarks.pools.filters $(if $(QUICK),--rounds 4)
	@$(BIN)/python -m benchmarks.pools.cold $(if $(QUICK),--models 24)
	@$(BIN)/python -m benchmarks.pools.simulation --check $(if $(QUICK),--models 10000 --requests 200000)
	@$(BIN)/python -m benchmarks.pools.machine $(if $(QUICK),--models 600 --memory-mib 32 --seconds 10)

.PHONY: bench-bulk
bench-bulk: setup-dev ## registration of many models, and their checks with a process for each and one for many: 10,000, ten minutes (QUICK=1: 100, a minute)
	@$(BIN)/python -m benchmarks.registry.bulk $(if $(QUICK),--models 100 --alone 10,--models 10000)

.PHONY: bench-gpu
bench-gpu: setup-dev ## the server beside the same torch module alone, on an NVIDIA GPU (DEVICE=cpu: try the script without; RECORD=1)
	@$(BIN)/python -m benchmarks.gpu $(if $(DEVICE),--device $(DEVICE)) $(if $(RECORD),--record)

FUZZ_SECONDS ?= 300
fuzz: setup-dev ## every way into the serving runtime, files that the control plane reads, and model files in the sandbox, FUZZ_SECONDS=300 seconds each (ONLY="onnx skops"); what is found is left in .fuzz/
	@$(BIN)/python -m tests.serving_runtime.fuzz.campaign .fuzz $(FUZZ_SECONDS) $(ONLY)
