"""The compiled runtimes that this release has. `tools/release/archive.py` writes this file into a release."""

# CPU, as in @platforms//cpu -> where the archive is ("url"), and its content ("integrity"). In the
# source tree there is none, and the runtime is compiled.
ARCHIVES = {}
