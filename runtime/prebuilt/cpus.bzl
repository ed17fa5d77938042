"""The CPUs that a release may have a compiled runtime for."""

# As in @platforms//cpu.
CPUS = [
    "aarch64",
    "x86_64",
]
