# The commands of daily work. Each first installs what it needs (scripts/setup.sh says what) and builds.
.DEFAULT_GOAL := help
.PHONY: help build demo test test-aarch64 test-llama-next test-loaders package test-package ci format lint corpora clean
MAKEFLAGS += --no-print-directory

prompt := And it came to pass in those days, that
configure := cmake --preset release -DROWTIDE_LLAMA_DIR=$(ROWTIDE_LLAMA_DIR)

help:
	@echo 'make build            rowtide and the llama.cpp plug-in: build/rowtide, build/librowtide-ggml.so'
	@echo 'make demo             text from a model whose table stays on disk, and the counters; at first 2 minutes'
	@echo 'make test             all tests, unit to end-to-end with unmodified llama.cpp programs; at first 15 minutes'
	@echo 'make test-aarch64     builds all for Arm, runs unit tests and a model under QEMU; at first 10 minutes'
	@echo 'make test-llama-next  the end-to-end tests with the next llama.cpp version; at first 10 minutes more'
	@echo 'make test-loaders     row ids and rows against transformers and SGLang themselves; at first 10 minutes and 6 GB'
	@echo 'make package          an archive for other machines: build-package/rowtide-*.tar.xz; 4 minutes. MACHINE=aarch64: for Arm'
	@echo 'make test-package     tries it in a bare Debian 13, which it fetches at first; root. SUITE=bookworm: Debian 12'
	@echo 'make ci               what every change must pass: tests, sanitizers, Arm, fuzzers, style; 40 minutes'
	@echo 'make format, lint     clang-format rewrites the C++ files; clang-tidy looks through them'
	@echo 'make corpora          20 million tokens of real text for `rowtide bench cache`, in .cache/corpora; 2 minutes'
	@echo 'make clean            removes what was built; what set-up fetched stays in .cache'
	@echo
	@echo 'Needed: git, make, root or sudo, x86-64 (aarch64: tested under QEMU) with glibc 2.34 or newer. Each command'
	@echo 'installs the rest: Debian 12 packages, and llama.cpp from npm into .cache, or where ROWTIDE_CACHE_DIR says.'
	@echo 'ROWTIDE_LLAMA_DIR=FOLDER builds against another llama.cpp: its source tree, built in its folder build/.'

build:
	@scripts/setup.sh build
	$(configure) -DROWTIDE_TESTS=OFF -DROWTIDE_BENCH=OFF
	cmake --build --preset release

demo: build
	@echo
	@echo 'Generating 48 tokens with models/tidepool.gguf, its table read from the file row by row:'
	build/rowtide generate -m models/tidepool.gguf -p '$(prompt)' -n 48

test:
	@scripts/setup.sh test
	$(configure) -DROWTIDE_TESTS=ON -DROWTIDE_BENCH=ON
	cmake --build --preset release
	ctest --preset release

test-aarch64:
	@scripts/setup.sh arm
	cmake --preset aarch64
	cmake --build --preset aarch64
	ctest --preset aarch64

# The programs of the next version load the very plug-in built above; `generate` is built against that version.
test-llama-next:
	@scripts/setup.sh next
	$(configure) -DROWTIDE_TESTS=OFF -DROWTIDE_BENCH=OFF
	cmake --build --preset release
	cmake --preset llama-next -DROWTIDE_LLAMA_DIR=$$(scripts/llama_setup.sh where next)
	cmake --build --preset llama-next
	ctest --preset llama-next

test-loaders: build
	@scripts/setup.sh loaders
	tests/e2e/loaders/run.sh

MACHINE := $(shell uname -m)
other_machine := $(filter-out $(shell uname -m),$(MACHINE))
package:
	@scripts/setup.sh package
	$(if $(other_machine),@scripts/setup.sh arm)
	scripts/package.sh $(MACHINE)

test-package: package $(if $(other_machine),build)
	@scripts/setup.sh test-package
	tests/package/run.sh $(MACHINE) $(SUITE)

ci:
	.ci/run

format lint:
	@scripts/setup.sh style
	scripts/style.sh $@

corpora:
	@scripts/setup.sh corpora
	scripts/corpora.sh make

clean:
	rm -rf build build-*
