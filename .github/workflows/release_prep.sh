#!/usr/bin/env bash
# Called by the workflow of a release, with the tag: leaves the archive here and prints the notes.
set -euo pipefail
exec python3 tools/release/archive.py "$1"
