"""This ruleset's version, for what it makes. A test compares it with MODULE.bazel."""

VERSION = "0.1.0"
