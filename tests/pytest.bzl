"""pytest_test: Python tests that pytest collects, as Bazel tests."""

load("@rules_python//python:defs.bzl", "py_test")

# What tags begin with that say how a target's actions run.
_OF_ACTIONS = ["block-", "cpu:", "disable-", "local", "no-", "requires-", "resources:", "supports-"]

def _of_actions(tags):
    return sorted([tag for tag in tags if [p for p in _OF_ACTIONS if tag.startswith(p)]])

def _check_sources(name, srcs, tags):
    """Fails where a source is also one of an earlier target of the package whose actions run otherwise.

    Current rules_python compiles a source for each target that lists it, to one and the same file.
    Bazel refuses that unless these actions are alike, to their tags.
    """
    for other in native.existing_rules().values():
        tags_differ = _of_actions(other.get("tags", ())) != _of_actions(tags)
        if not other["kind"].startswith("py_") or not tags_differ:
            continue
        for src in other.get("srcs", ()):
            if src.removeprefix(":") in srcs:
                fail("{} and {} both list {}, and their tags differ: make it a py_library".format(
                    name,
                    other["name"],
                    src.removeprefix(":"),
                ))

def pytest_test(
        name,
        srcs,
        deps = [],
        data = [],
        args = [],
        tags = [],
        env = {},
        torch = False,
        **kwargs):
    """A py_test whose tests pytest collects and runs.

    Args:
        name: the target's name.
        srcs: test files, and helpers that they import.
        deps: py_library targets; pytest need not be named.
        data: files that the tests read.
        args: more arguments for pytest.
        tags: tags of the test. One with torch gets the tag "torch", so that
            `--build_tests_only --test_tag_filters=-torch` leaves it out.
        env: variables of the test.
        torch: whether the tests import the toolchain's torch.
        **kwargs: attributes of py_test.
    """
    tests = [src for src in srcs if src.rpartition("/")[2].rpartition(":")[2].startswith("test_")]
    if not tests:
        fail("pytest_test {}: none of srcs is named test_*.py".format(name))
    _check_sources(name, srcs, tags)
    py_test(
        name = name,
        srcs = srcs + ["//tests:pytest_main.py"],
        main = "//tests:pytest_main.py",
        args = ["$(rootpath {})".format(test) for test in tests] + args,
        data = data + srcs,
        deps = deps + ["@dev_packages//:packages"] + (["@torch_site//:packages"] if torch else []),
        # Threads of OpenMP that wait in a loop take the CPUs from the tests beside this one.
        env = {"OMP_WAIT_POLICY": "passive"} | env,
        legacy_create_init = False,
        tags = tags + (["torch"] if torch else []),
        **kwargs
    )
