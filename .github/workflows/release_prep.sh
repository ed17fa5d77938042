#!/usr/bin/env bash
# Called by the workflow of a release, with the tag: leaves the archives here and prints the notes.
set -euo pipefail

# The oldest compiler whose C++ library programs may have: see docs/releasing.md.
./bazelw build --compilation_mode=opt --repo_env=CC=gcc-12 //runtime/prebuilt >&2
mkdir runtime_x86_64 && cp bazel-bin/runtime/prebuilt/*.a runtime_x86_64

if ! command -v aarch64-linux-gnu-g++-12 >&2; then
  sudo apt-get update >&2
  sudo apt-get install --yes --no-install-recommends g++-12-aarch64-linux-gnu >&2
fi
./bazelw build --compilation_mode=opt --platforms=//toolchain/platforms:linux_aarch64 \
  --extra_toolchains=//tools/cross_cc:gcc_12_linux_aarch64 //runtime/prebuilt >&2
mkdir runtime_aarch64 && cp bazel-bin/runtime/prebuilt/*.a runtime_aarch64

exec python3 tools/release/archive.py "$1" --runtime=x86_64=runtime_x86_64 \
  --runtime=aarch64=runtime_aarch64
