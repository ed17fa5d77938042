"""lint_test: a linter over all files of the workspace, as a test."""

load("@rules_python//python:defs.bzl", "py_test")

def lint_test(name, linter, program = None, **kwargs):
    """Runs a linter over the workspace.

    Args:
        name: the target's name.
        linter: one of the names that lint.py knows.
        program: the label of the linter's program, if no Python package brings it.
        **kwargs: attributes of py_test.
    """
    py_test(
        name = name,
        srcs = ["//tools:run_linter.py"],
        main = "//tools:run_linter.py",
        args = [linter, "--root=$(rootpath //:MODULE.bazel)"] +
               (["--program=$(rootpath {})".format(program)] if program else []),
        data = ["//:MODULE.bazel"] + ([program] if program else []),
        legacy_create_init = False,
        # The files are not declared: a sandbox would hide them, a cached result be out of date.
        tags = [
            "external",
            "local",
            "no-remote",
        ] + (["torch"] if linter == "mypy" else []),
        # mypy reads the types of what is imported.
        deps = [":lint", "@dev_packages//:packages"] + (["@torch_site//:packages"] if linter == "mypy" else []),
        **kwargs
    )
