"""Bazel for machines that reach a Debian mirror and a Python package index, but no Bazel server.

`../../bazelw` is the way in; `python3 tools/airgap` prepares the same thing by hand. What is made:

    downloads/<sha256>          every file fetched, named by its hash
    prefix/<key>/               Debian's Bazel with its own loader, libraries and JVM
    env/<key>/                  a module registry over Debian's rulesets, and the `bazel` command

The keys are digests of what goes in, so a changed MODULE.bazel makes a new `env` and downloads
nothing. Standard library only; nothing is installed and no root rights are needed.
"""
