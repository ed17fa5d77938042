"""The `exec_properties` of `aoti_model`: each of its targets gets those of its own exec groups."""

load(":driver.bzl", "CODEGEN", "EXPORT", "PACKAGE")

# Bazel's own, which every test has.
TEST = "test"

_GROUPS = [EXPORT, CODEGEN, PACKAGE, TEST]

def exec_properties_error(properties):
    """Checks that `aoti_model` can hand these on.

    Args:
        properties: the macro's `exec_properties`.

    Returns:
        the error's text or None.
    """
    if type(properties) != "dict":
        return "exec_properties must be a dict; a select() can't be divided among targets: give it to torch_export and aoti_library themselves"
    for key in properties:
        group, dot, _ = key.partition(".")
        if dot and group not in _GROUPS:
            return "exec_properties has \"{}\", but there is no exec group `{}`. Known: {}; a key without a dot goes to all".format(
                key,
                group,
                ", ".join(_GROUPS),
            )
    return None

def properties_of_groups(properties, groups):
    """The part of `exec_properties` for a rule: Bazel refuses what names a group that a rule hasn't.

    Args:
        properties: the macro's `exec_properties`.
        groups: list of string: the rule's exec groups.

    Returns:
        dict
    """
    return {key: value for key, value in properties.items() if "." not in key or key.partition(".")[0] in groups}
