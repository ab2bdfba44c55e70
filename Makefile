# Targets of the project. ./build.sh finds toolchains and tags and calls make;
# with TAGS set by hand, make works alone: make build TAGS=metis

GO      ?= go
TAGS    ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)
BIN ?= bin
# Programs do not say where they were built. Tests leave it out: what was compiled for the
# programs serves them too.
TRIMPATH ?= -trimpath
FUZZTIME ?= 10s
SOAK ?= 30

# The worker runs wherever Lambda puts it: without a C library of its own where it can
# be linked so.
comma := ,
WORKER_TAGS := lambda.norpc,netgo,osusergo,grpcnotrace$(if $(findstring noblas,$(TAGS)),$(comma)noblas)
STATIC ?= $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo 'int main(void){return 0;}' | $${CC:-gcc} -x c - -static -o /dev/null 2>/dev/null && echo -linkmode external -extldflags -static)

# GPU support is in every build of make's, by the tag cuda. It takes gcc and no toolkit:
# our cuda.h comes before that of any. Its checksum is there because the go command does
# not see edits of a header that is found by -I.
GPU_TAGS := $(TAGS)$(if $(TAGS),$(comma))cuda
# A make within a make has them already: other flags would compile everything anew.
ifeq (,$(findstring DORYLUS_CUDA_H,$(CGO_CFLAGS)))
export CGO_CFLAGS := "-I$(CURDIR)/csrc/include" -DDORYLUS_CUDA_H=$(shell cksum < csrc/include/cuda.h | cut -d ' ' -f 1) $(if $(CGO_CFLAGS),$(CGO_CFLAGS),-O2)
export CGO_LDFLAGS := "-L$(CURDIR)/csrc/cudashim/lib" $(if $(CGO_LDFLAGS),$(CGO_LDFLAGS),-O2)
endif
# Packages that are others with the tag.
GPU := ./csrc/cudashim/... ./csrc/cublas/... ./kernels/cuda/... ./engine/pipeline/ongpu

# Packages whose Go code runs without cgo in production.
PURE := ./engine/... ./kernels/... ./cmd/... ./lambda/... ./cluster/...
# Packages that call C.
NATIVE := ./csrc/... ./kernels/cpu/...
# Packages with goroutines.
CONCURRENT := ./engine/pipeline/... ./engine/params/... ./engine/prepare/... ./engine/order/... ./engine/store/... ./engine/sink/... ./lambda/... ./cluster/... $(NATIVE)

.PHONY: help build gpu-bench test test-gpu test-gpu-golden test-gpu-scripts gpu-first gpu-header cubin ptxas nvcc test-arm64-asm test-nocgo test-race test-asan test-arm64 test-rie k8s-test test-netns test-all soak fuzz lint bench bench-go bench-kernels bench-lambda bench-cluster accuracy parity ptx images test-image check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/dorylus-engine and bin/dorylus-lambda
	$(GO) build -tags "$(GPU_TAGS)" $(TRIMPATH) -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/dorylus-engine
	$(GO) build -tags "$(WORKER_TAGS)" $(TRIMPATH) -ldflags "-s -w $(STATIC)" -o $(BIN)/ ./cmd/dorylus-lambda

gpu-bench:
	$(GO) build -tags "$(GPU_TAGS)" $(TRIMPATH) -o bin/gpu-bench ./bench/gpu

test: ## go vet and all tests
	$(GO) test -vet=all -tags "$(TAGS)" ./...
	$(GO) test -vet=all -tags "$(GPU_TAGS)" $(GPU)
	$(GO) test -vet=all -tags "$(GPU_TAGS)" -run 'GPU|Driver|Devices' ./cmd/dorylus-engine

test-gpu: ## tests of GPU mode on this machine's GPU (DORYLUS_CUDA_DRIVER names another driver); fails without one
	DORYLUS_TEST_GPU=$${DORYLUS_TEST_GPU:-1} $(GO) test -tags "$(GPU_TAGS)" -count=1 -run '^TestRealGPU$$' ./kernels/cuda/conform
	DORYLUS_TEST_GPU=$${DORYLUS_TEST_GPU:-1} $(GO) test -tags "$(GPU_TAGS)" -count=1 -timeout 30m -skip Emulated ./kernels/cuda/... ./engine/pipeline/ongpu
	DORYLUS_TEST_GPU=$${DORYLUS_TEST_GPU:-1} $(GO) test -tags "$(GPU_TAGS)" -count=1 -timeout 30m -run GPU -skip Emulated ./cmd/dorylus-engine
	DORYLUS_CUDA_DRIVER=$${DORYLUS_CUDA_DRIVER:-libcuda.so.1} $(GO) test -count=1 -run '^TestKernels$$' ./csrc/cuda

test-gpu-golden: ## of these, the reference runs of ../shared/golden (DORYLUS_TEST_GPU=emulated: on the emulated device)
	DORYLUS_TEST_GPU=$${DORYLUS_TEST_GPU:-1} $(GO) test -tags "$(GPU_TAGS)" -count=1 -v -run Golden ./engine/pipeline/ongpu

test-nocgo: ## vet and tests without any C
	CGO_ENABLED=0 $(GO) test -vet=all -short $(PURE)
	CGO_ENABLED=0 $(GO) vet ./csrc/... ./bench/...

test-race: ## tests of the concurrent packages under the race detector
	$(GO) test -tags "$(TAGS)" -race -short $(CONCURRENT)
	$(GO) test -tags "$(GPU_TAGS)" -race -short ./csrc/cudashim/... ./kernels/cuda/... ./engine/pipeline/ongpu

test-asan: ## tests of the native packages under the address sanitizer
	$(GO) test -tags "$(TAGS)" -asan -short $(NATIVE)

test-arm64: ## vet for a processor that has no C kernels
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...

test-all: TRIMPATH :=
test-all: build test test-nocgo test-arm64 test-race test-asan ## everything that has to pass

k8s-test: ## hand the manifests of launch k8s to a real API server (KUBE_APISERVER=path; K8S_BUILD=1 builds one, slowly)
	GO="$(GO)" TAGS="$(TAGS)" cluster/launch/k8s-test.sh

test-rie: build ## train through the worker under AWS's emulator (fetches it)
	lambda/worker/rie-test.sh

test-netns: build ## runs on several hosts, network namespaces with slow, lossy and cut links; servers killed (root, 10 minutes)
	NETNS_PROGRAM=$(CURDIR)/bin/dorylus-engine $(GO) test -tags "$(TAGS)" -v -count=1 -timeout 60m ./cluster/netns

soak: build ## such runs disturbed at random for SOAK minutes (30), each with the bits of an undisturbed one (root)
	SOAK=$(SOAK) NETNS_PROGRAM=$(CURDIR)/bin/dorylus-engine $(GO) test -tags "$(TAGS)" -v -count=1 -timeout 0 -run TestSoak ./cluster/netns

images: ## build the images dorylus and dorylus-lambda with docker or podman (BASE_IMAGE=..., see Dockerfile)
	VERSION="$(VERSION)" cmd/image/images.sh

test-image: ## build the images upon a Debian made here, pulling nothing, and run what they run (root on Debian, 10 minutes)
	GO="$(GO)" VERSION="$(VERSION)" cmd/image/replay.sh

fuzz: ## run every fuzz test for FUZZTIME (10s)
	@set -e; for f in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
	  for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' $$f); do \
	    echo "$$(dirname $$f) $$name"; \
	    $(GO) test -tags "$(TAGS)" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$(dirname $$f); \
	  done; done

lint: ## gofmt, go vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted by gofmt:"; echo "$$out"; exit 1; fi
	$(GO) vet -tags "$(TAGS)" ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags "$(TAGS)" ./...

bench: build ## epochs, memory and whole runs beside PyG and DGL, in turn; needs bench/peers/setup.sh and the reference data
	$(GO) run -tags "$(TAGS)" ./bench/epochs -out bench/results/epochs.json

bench-go: ## all Go benchmarks, once
	$(GO) test -tags "$(TAGS)" -run '^$$' -bench . -benchtime 1x ./...

bench-kernels: ## the sparse and dense kernels beside the machine's ceilings
	$(GO) run -tags "$(TAGS)" ./bench/kernels

bench-lambda: build ## bytes, overlap, bits, autotuner and bills of Lambda mode: 10 minutes on a quiet machine
	$(GO) run -tags "$(TAGS)" ./bench/lambda -out bench/results/lambda.json

bench-cluster: build ## several servers against one process: bits, staleness, ghost rows, scaling; needs the reference data
	$(GO) run -tags "$(TAGS)" ./bench/cluster -out bench/results/cluster.json

accuracy: build ## published accuracies, as means over seeds; needs the reference data
	$(GO) run ./bench/accuracy

parity: build ## our models against PyTorch Geometric itself (installs it outside the repository)
	bench/peers/setup.sh
	$${XDG_CACHE_HOME:-$$HOME/.cache}/dorylus-peers/bin/python bench/peers/parity.py $$(test -d ../shared/data/planetoid-cora && echo --planetoid ../shared/data/planetoid-cora)

ptx: ## make the GPU kernels' PTX again (clang-14); csrc/cuda/ptx.sh --check compares
	csrc/cuda/ptx.sh

cubin: ## exact images of the GPU kernels for ARCHS (sm_80 sm_90), with nvcc, into bin/cubin, where the program beside it finds them
	@mkdir -p bin/cubin
	@command -v $${NVCC:-nvcc} >/dev/null || { echo "no nvcc: set NVCC; make nvcc says where one can be had" >&2; exit 1; }
	for arch in $${ARCHS:-sm_80 sm_90}; do rm -f bin/cubin/$$arch-*.cubin; $${NVCC:-nvcc} $${NVCC_FLAGS:-} -std=c++17 -O3 -arch=$$arch -cubin -o bin/cubin/$$arch-$$(csrc/cuda/hash.sh).cubin csrc/cuda/all.cu || exit 1; done

ptxas: ## assemble the GPU kernels with ptxas of CUDA 12 and 13, compile them with nvcc and newer clang; fetches them (bench/gpu/toolkit.sh)
	bench/gpu/compile.sh

nvcc: ## of these, nvcc of CUDA 12 and 13 only
	OUT=$${OUT:-/dev/null} bench/gpu/compile.sh nvcc

gpu-header: ## our cuda.h against those of CUDA 12 and 13; fetches them
	@mkdir -p bin
	$(GO) run ./bench/gpu/header -o bin/cuda_asserts.c csrc/include/cuda.h
	@eval "$$(bench/gpu/toolkit.sh)" && for h in "$$HEADER12" "$$HEADER13"; do bench/gpu/header.sh bin/cuda_asserts.c "$$(dirname "$$h")" || exit 1; done

gpu-first: build gpu-bench ## pack what a first run on a GPU machine needs, without Go there: bin/gpu-first.tar.gz
	TAGS="$(GPU_TAGS)" GO="$(GO)" bench/gpu/pack.sh bin/gpu-first.tar.gz

test-gpu-scripts: export TRIMPATH :=
test-gpu-scripts: gpu-first ## bench/gpu.sh and gpu_first.sh on the emulated device (20 minutes)
	csrc/cuemu/build.sh bin/libcuemu.so
	$${CC:-gcc} -shared -fPIC -O2 -std=gnu11 -ffp-contract=off -o bin/libcublas-emulated.so csrc/cublas/fakeblas/testdata/fake.c -ldl
	DORYLUS_CUDA_DRIVER=$(CURDIR)/bin/libcuemu.so DORYLUS_CUBLAS=$(CURDIR)/bin/libcublas-emulated.so SHORT=1 CORA_EPOCHS=3 VERTICES=400 DEGREE=10 FEATURES=24 CLASSES=5 WIDTHS=16,41 EPOCHS=2 RATE_MB=1 bench/gpu.sh bin/gpu-emulated
	rm -rf bin/gpu-first && tar -C bin -xzf bin/gpu-first.tar.gz
	DORYLUS_CUDA_DRIVER=$(CURDIR)/bin/libcuemu.so bin/gpu-first/gpu_first.sh bin/gpu-first-emulated

test-arm64-asm: ## what is written for arm64 in assembly, under qemu-user
	bench/gpu/arm64.sh

check: lint test-all fuzz ## all of the above but the benchmarks: before pushing

clean: ## remove what was built
	rm -rf bin
