"""rules_python's toolchain for its own build steps. Every py_library resolves it if rules_python has the type.

Without it, rules_python would use that of an interpreter that rules_python downloads.
"""

def has_exec_tools(rctx):
    """Whether the rules_python of this build has the toolchain type.

    Args:
      rctx: the repository rule's context. The repository is fetched again when the answer changes.

    Returns:
      True or False.
    """
    rule = rctx.path(Label("@rules_python//python:defs.bzl")).dirname.get_child("py_exec_tools_toolchain.bzl")
    rctx.watch(rule)
    return rule.exists

_TOOLCHAIN = """
# The same for the steps of rules_python itself.
toolchain(
    name = "exec_tools",
    exec_compatible_with = {constraints},
    target_compatible_with = {constraints},
    toolchain = "@{python}//:exec_tools",
    toolchain_type = "{exec_tools_type}",
)
"""

def exec_tools_toolchain(python, constraints):
    """The `toolchain()` target.

    Args:
      python: the name of the interpreter's repository.
      constraints: list of the host's constraint values, as strings.

    Returns:
      text for a BUILD file.
    """
    return _TOOLCHAIN.format(
        constraints = repr(constraints),
        # A string, because older releases do not have this target.
        exec_tools_type = str(Label("@rules_python//python:exec_tools_toolchain_type")),
        python = python,
    )

_LOAD = """\
load("@rules_python//python:py_exec_tools_toolchain.bzl", "py_exec_tools_toolchain")
"""

_TARGET = """
py_exec_tools_toolchain(
    name = "exec_tools",
    precompiler = "{precompiler}",
)
"""

def exec_tools_load():
    """The `load()` that `exec_tools_target()` needs."""
    return _LOAD

def exec_tools_target():
    """Makes the toolchain's target: this interpreter, and rules_python's bytecode compiler."""
    return _TARGET.format(precompiler = str(Label("@rules_python//tools/precompiler:precompiler")))
