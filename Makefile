# make help lists what there is. Everything works from a fresh clone: what a target needs is made or installed first.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

STAMPS := build/stamps
PYTHON := .venv/bin/python
# Known only once build/stamps/go is made, so it is expanded in recipes alone.
GO = $(shell cat $(STAMPS)/go)
GOBUILD = CGO_ENABLED=1 $(GO) build -trimpath -buildvcs=false -ldflags='-s -w'

# Tests and commands find the interpreter, its packages and the toolchain by these.
WITH_PATHS = SAMEBITS_PYTHON="$(CURDIR)/$(PYTHON)" VIRTUAL_ENV="$(CURDIR)/.venv" \
	PATH="$(CURDIR)/.venv/bin:$(dir $(GO)):$$PATH"

.PHONY: help setup venv build proto lock test test-go test-python test-gpu fuzz lint fmt demo bundle goldens clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/system venv $(STAMPS)/go ## install or find what everything else needs

venv: $(STAMPS)/venv ## make .venv from requirements.lock

$(STAMPS)/system: scripts/system.sh scripts/python.sh
	@mkdir -p $(@D)
	scripts/system.sh
	@touch $@

$(STAMPS)/venv: requirements.lock scripts/venv.sh scripts/python.sh | $(STAMPS)/system
	scripts/venv.sh
	@touch $@

$(STAMPS)/go: scripts/go.sh scripts/locks/go.lock $(STAMPS)/venv
	@scripts/go.sh > $@

# Tools written in Go, at the versions of tools/go.mod.
TOOLS := build/tools/protoc-gen-go build/tools/protoc-gen-go-grpc build/tools/staticcheck build/tools/gotestsum
IMPORT_protoc-gen-go := google.golang.org/protobuf/cmd/protoc-gen-go
IMPORT_protoc-gen-go-grpc := google.golang.org/grpc/cmd/protoc-gen-go-grpc
IMPORT_staticcheck := honnef.co/go/tools/cmd/staticcheck
IMPORT_gotestsum := gotest.tools/gotestsum

$(TOOLS): build/tools/%: tools/go.mod tools/go.sum | $(STAMPS)/go
	@mkdir -p $(@D)
	cd tools && $(GO) build -trimpath -o ../$@ $(IMPORT_$*)

build: setup ## build bin/parity and the plugins written in Go
	@mkdir -p bin
	$(GOBUILD) -o bin/parity ./cmd/parity
	$(GOBUILD) -o bin/samebits-predictor ./plugins/predictor
	$(GOBUILD) -o bin/samebits-trainer ./plugins/trainer
	$(GOBUILD) -o bin/samebits-example ./plugins/example

proto: setup build/tools/protoc-gen-go build/tools/protoc-gen-go-grpc ## generate the code of bridge/proto
	scripts/proto.sh

LOCK = $(PYTHON) -m uv pip compile -q --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock'

lock: setup ## resolve the Python requirements anew
	$(LOCK) --universal --python-version 3.10 requirements.in -o requirements.lock
	$(LOCK) --universal --python-version 3.10 scripts/locks/go.in -o scripts/locks/go.lock
	$(LOCK) --universal --python-version 3.10 scripts/locks/uv.in -o scripts/locks/uv.lock
	$(LOCK) --no-deps --python-version 3.12 --python-platform x86_64-manylinux_2_28 scripts/locks/bundle.in -o scripts/locks/bundle.lock

test: test-go test-python ## run all tests that need no GPU

test-go: build build/tools/gotestsum ## run the tests written in Go
	$(GO) vet ./...
	$(WITH_PATHS) build/tools/gotestsum --format pkgname -- -timeout 30m ./...

test-python: setup ## run the tests written in Python
	cd plugins/reference && $(WITH_PATHS) python -m pytest -q -m "not gpu and not slow"

test-gpu: build build/tools/gotestsum ## run the tests that need a GPU
	@command -v nvidia-smi >/dev/null && nvidia-smi -L || { echo "no GPU here: nvidia-smi finds none" >&2; exit 1; }
	$(WITH_PATHS) build/tools/gotestsum --format pkgname -- -tags gpu -timeout 30m ./native/... ./parity/... ./plugins/... ./cmd/...
	cd plugins/reference && $(WITH_PATHS) python -m pytest -q -m gpu

fuzz: setup ## fuzz all decoders: FUZZTIME=60s (or 100000x) each, FUZZ=recording some of them
	GO="$(GO)" FUZZTIME="$(FUZZTIME)" FUZZ="$(FUZZ)" scripts/fuzz.sh

CLANG_FILES = $(shell git ls-files '*.c' '*.cpp' '*.h' '*.cu' '*.cuh')
PYTHON_PROJECTS = $(dir $(shell git ls-files '*pyproject.toml'))

lint: setup $(TOOLS) ## check format, types, suspicious code and generated code
	@files=$$($$($(GO) env GOROOT)/bin/gofmt -l $$(git ls-files '*.go')); [ -z "$$files" ] || { echo "not gofmt: $$files" >&2; exit 1; }
	PATH="$(dir $(GO)):$$PATH" build/tools/staticcheck ./...
	PATH="$(dir $(GO)):$$PATH" build/tools/staticcheck -tags gpu ./native/... ./cmd/...
	.venv/bin/clang-format --dry-run -Werror $(CLANG_FILES)
	for p in $(PYTHON_PROJECTS); do (cd $$p && export PATH="$(CURDIR)/.venv/bin:$$PATH" && ruff check . && ruff format --check . && mypy); done
	for script in $$(git ls-files '*.sh') .ci/run; do bash -n $$script; done
	scripts/proto.sh --check

fmt: setup ## format all sources
	$$($(GO) env GOROOT)/bin/gofmt -w $$(git ls-files '*.go')
	for pass in 1 2 3 4; do .venv/bin/clang-format -i $(CLANG_FILES); done # long macros settle after a few
	for p in $(PYTHON_PROJECTS); do (cd $$p && export PATH="$(CURDIR)/.venv/bin:$$PATH" && ruff check --fix . && ruff format .); done

demo: build wheel-venv ## verify resnet-18 and yolo9-t on this machine, then train and predict from Python
	$(WITH_PATHS) scripts/demo.sh

bundle: build ## put all that a GPU machine without network needs into build/bundle
	$(WITH_PATHS) GO="$(GO)" scripts/bundle.sh

goldens: build ## make what goldens holds of a GPU anew, on this machine's
	$(WITH_PATHS) scripts/goldens.sh

clean: ## remove what was built; .venv stays
	rm -rf bin build

# ---- The Python package: bridge/python, docs/python.md --------------------------------------------------------------

.PHONY: wheel wheel-venv test-wheel test-wheel-venv test-wheel-gpu lock-wheel

wheel: setup ## build the Python package for the CPythons at hand, into dist
	$(WITH_PATHS) scripts/wheel.sh build

test-wheel: wheel ## install each wheel in a clean environment and run its tests there
	$(WITH_PATHS) scripts/wheel.sh again
	$(WITH_PATHS) scripts/wheel.sh test

VENV_VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

wheel-venv: setup
	PYTHONS=$(VENV_VERSION) $(WITH_PATHS) scripts/wheel.sh build

# For CI: the wheel of one CPython, with NumPy alone and with PyTorch.
test-wheel-venv: wheel-venv
	PYTHONS=$(VENV_VERSION) $(WITH_PATHS) scripts/wheel.sh test
	$(WITH_PATHS) scripts/wheel.sh torch -m "not gpu"

test: test-wheel-venv

test-wheel-gpu: wheel-venv
	$(WITH_PATHS) scripts/wheel.sh torch -m gpu

test-gpu: test-wheel-gpu

lock-wheel: setup
	$(LOCK) --universal --python-version 3.10 scripts/locks/wheel.in -o scripts/locks/wheel.lock
	$(LOCK) --universal --python-version 3.10 scripts/locks/wheel-test.in -o scripts/locks/wheel-test.lock

lock: lock-wheel
