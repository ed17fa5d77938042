"""Attributes of the runtime's libraries that differ where the release has them compiled."""

load(":archives.bzl", "ARCHIVES")

def prebuilt_or(source, prebuilt):
    """What an attribute is with the compiled runtime, and without it.

    Args:
        source: the attribute's value if the runtime is compiled from its source.
        prebuilt: a list of strings in place of it; `{cpu}` stands for the target's CPU.

    Returns:
        source itself in a source tree, which has nothing compiled; otherwise a select().
    """
    if not ARCHIVES:
        return source
    choices = {
        Label("//runtime/prebuilt:linux_" + cpu): [text.format(cpu = cpu) for text in prebuilt]
        for cpu in ARCHIVES
    }
    return select(choices | {"//conditions:default": source})
