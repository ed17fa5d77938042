"""The hub repository. It only has `toolchain()` targets, so that registering them fetches no large files."""

load(":exec_tools.bzl", "exec_tools_toolchain", "has_exec_tools")
load(":host.bzl", "host_constraints", "host_cpu")

# The CPUs for which models can be compiled.
_CPUS = ["aarch64", "x86_64"]

_ROOT = """\
# The toolchain for actions.
toolchain(
    name = "torch",
    exec_compatible_with = {constraints},
    toolchain = "@{site}//:torch_toolchain",
    toolchain_type = "{toolchain_type}",
)

# The toolchain that compiled models are linked with.
toolchain(
    name = "torch_runtime",
    target_compatible_with = {constraints},
    toolchain = "@{site}//:torch_runtime_toolchain",
    toolchain_type = "{runtime_toolchain_type}",
)

# Triton, for models for CUDA alone: nothing else fetches it.
toolchain(
    name = "triton",
    exec_compatible_with = {constraints},
    target_compatible_with = {constraints},
    toolchain = "@{triton}//:triton_toolchain",
    toolchain_type = "{triton_toolchain_type}",
)
"""

_CROSS = """
# For a CPU that the wheels are not for: torch's headers fit it, but libtorch does not.
toolchain(
    name = "torch_runtime_{cpu}",
    target_compatible_with = {constraints},
    toolchain = "@{site}//:torch_headers_toolchain",
    toolchain_type = "{runtime_toolchain_type}",
)
"""

_PYTHON = """\
# Opt-in: the interpreter of the actions, for py_binary and py_test.
toolchain(
    name = "python",
    exec_compatible_with = {constraints},
    target_compatible_with = {constraints},
    toolchain = "@{python}//:runtime_pair",
    toolchain_type = "{python_toolchain_type}",
)

# The packages of the toolchain's lock, NumPy and torch among them.
alias(
    name = "packages",
    actual = "@{site}//:packages",
    visibility = ["//visibility:public"],
)
"""

def _hub_repo_impl(rctx):
    cpu = host_cpu(rctx.attr.cpu)
    values = dict(
        constraints = repr(host_constraints(rctx.attr.os, rctx.attr.cpu)),
        python = rctx.attr.python,
        python_toolchain_type = str(Label("@rules_python//python:toolchain_type")),
        runtime_toolchain_type = str(Label("//toolchain:runtime_toolchain_type")),
        site = rctx.attr.site,
        toolchain_type = str(Label("//toolchain:toolchain_type")),
        triton = rctx.attr.triton,
        triton_toolchain_type = str(Label("//toolchain:triton_toolchain_type")),
    )
    cross = [
        _CROSS.format(**(values | {
            "constraints": repr(host_constraints("linux", other)),
            "cpu": other,
        }))
        for other in _CPUS
        if other != cpu
    ]
    rctx.file("BUILD.bazel", _ROOT.format(**values) + "".join(cross))
    python = _PYTHON.format(**values)
    if has_exec_tools(rctx):
        python += exec_tools_toolchain(rctx.attr.python, host_constraints(rctx.attr.os, rctx.attr.cpu))
    rctx.file("python/BUILD.bazel", python)

hub_repo = repository_rule(
    implementation = _hub_repo_impl,
    doc = "The repository whose `//:all` is registered.",
    attrs = {
        "cpu": attr.string(mandatory = True, doc = "The host's processor, as Java's `os.arch` names it."),
        "os": attr.string(mandatory = True, doc = "The host's operating system, as Java's `os.name` names it."),
        "python": attr.string(mandatory = True, doc = "The interpreter's repository."),
        "site": attr.string(mandatory = True, doc = "The repository with torch."),
        "triton": attr.string(mandatory = True, doc = "The repository with Triton's toolchain."),
    },
)
