#!/usr/bin/env bash
# Called by the workflow of a release, with the tag: leaves the archives here and prints the notes.
set -euo pipefail
# The oldest compiler whose C++ library programs may have: see docs/releasing.md.
./bazelw build --compilation_mode=opt --repo_env=CC=gcc-12 //runtime/prebuilt >&2
exec python3 tools/release/archive.py "$1" "--runtime=$(uname -m)=bazel-bin/runtime/prebuilt"
