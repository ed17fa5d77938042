"""The host as constraint values of `@platforms`: the interpreter and the wheels run on it."""

# Java's names of operating systems and processors.
_OS = {"linux": "linux", "mac os x": "osx"}
_CPU = {"aarch64": "aarch64", "amd64": "x86_64", "arm64": "aarch64", "x86_64": "x86_64"}

def host_cpu(cpu):
    """The constraint value's name for `cpu`, Java's `os.arch`; None if it has none."""
    return _CPU.get(cpu, None)

def host_constraints(os, cpu):
    """The labels of a host's constraint values, from Java's `os.name` and `os.arch`, as strings."""
    names = [("os", _OS.get(os, None)), ("cpu", host_cpu(cpu))]
    return [str(Label("@platforms//{}:{}".format(kind, name))) for kind, name in names if name]
