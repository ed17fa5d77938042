"""Checks the tags of the `torch` module extension.

Every function returns the text of the error, or None. The extension hands the text to `fail()`; the tests read it.
"""

load(":lock.bzl", "locked_versions", "parse_lock")
load(":versions.bzl", "TORCH_VERSIONS")

_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

# The greatest number of a lock's problems that an error lists.
_SHOWN_PROBLEMS = 5

def _sorted_versions(versions):
    return sorted(versions, key = lambda v: [int(part) if part.isdigit() else 0 for part in v.split(".")])

def check_torch_version(tag, version, available = TORCH_VERSIONS):
    """Checks that there is a toolchain for this torch.

    Args:
      tag: how to name the tag in the error, such as `torch.toolchain() of module "app"`.
      version: the tag's attribute.
      available: the known versions (a dict by version).

    Returns:
      the error's text or None.
    """
    if version in available:
        return None
    return "{}: version = \"{}\" is not a torch that rules_aoti knows. Available: {}.".format(
        tag,
        version,
        ", ".join(_sorted_versions(available.keys())),
    )

def check_python_version(tag, python, torch_version = None, available = TORCH_VERSIONS):
    """Checks that this is a Python version, such as `3.11`, that torch has wheels for.

    Args:
      tag: how to name the tag in the error.
      python: the tag's attribute.
      torch_version: the toolchain's torch, or None if any Python will do.
      available: the known torch versions with their Python versions.

    Returns:
      the error's text or None.
    """
    parts = python.split(".")
    if len(parts) != 2 or parts[0] != "3" or not parts[1].isdigit():
        return "{}: python = \"{}\" is not of the form \"3.N\", such as \"3.11\".".format(tag, python)
    if torch_version and python not in available.get(torch_version, [python]):
        return "{}: torch {} has no wheels for python = \"{}\". Available: {}.".format(
            tag,
            torch_version,
            python,
            ", ".join(available[torch_version]),
        )
    return None

def check_repository_name(tag, name, taken):
    """Checks that a repository can have this name, and that no other has it.

    Args:
      tag: how to name the tag in the error.
      name: the tag's attribute.
      taken: dict from the names already given to the tag that has it.

    Returns:
      the error's text or None.
    """
    if not name or not name[0].isalpha() or [c for c in name.elems() if c not in _NAME_CHARACTERS]:
        return "{}: name = \"{}\" is not a repository name: use letters, digits, `_`, `-` and `.`, a letter first.".format(tag, name)
    if name in taken:
        return "{}: name = \"{}\" is taken by {}. Choose another name.".format(tag, name, taken[name])
    return None

def check_lock(tag, label, text):
    """Checks that this text is a lock: every package is pinned and has its hashes.

    Args:
      tag: how to name the tag in the error.
      label: the lock's label, for the error.
      text: the lock's content.

    Returns:
      the error's text or None.
    """
    lock = parse_lock(text)
    if lock.problems:
        shown = lock.problems[:_SHOWN_PROBLEMS]
        if len(lock.problems) > len(shown):
            shown.append("and {} more".format(len(lock.problems) - len(shown)))
        return (
            "{}: requirements_lock = \"{}\" is not a lock with hashes:\n  {}\n" +
            "Make one with `pip-compile --generate-hashes` or `uv pip compile --generate-hashes`."
        ).format(tag, label, "\n  ".join(shown))
    if not lock.packages:
        return "{}: requirements_lock = \"{}\" holds no package.".format(tag, label)
    return None

def pins_torch(text, version):
    """Whether a lock pins this torch, in whichever build, and no other.

    Args:
      text: the lock's content.
      version: the torch version, without a build's name.

    Returns:
      True or False.
    """
    pinned = locked_versions(parse_lock(text), "torch")
    return bool(pinned) and not [v for v in pinned if v.partition("+")[0] != version]

def check_locked_torch(tag, label, text, version):
    """Checks that the lock pins the toolchain's torch.

    Args:
      tag: how to name the tag in the error.
      label: the lock's label, for the error.
      text: the lock's content.
      version: the torch version of the tag.

    Returns:
      the error's text or None.
    """
    if pins_torch(text, version):
        return None
    pinned = locked_versions(parse_lock(text), "torch")
    if not pinned:
        return ("{}: requirements_lock = \"{}\" doesn't pin torch: the environment of the actions must hold " +
                "torch=={} itself.").format(tag, label, version)
    return "{}: requirements_lock = \"{}\" pins torch {}, but version = \"{}\". Make the two agree.".format(
        tag,
        label,
        ", ".join(pinned),
        version,
    )

def check_one_toolchain(module, count):
    """A module declares at most one toolchain.

    Args:
      module: the module's name.
      count: how many `torch.toolchain()` tags it has.

    Returns:
      the error's text or None.
    """
    if count <= 1:
        return None
    return "module \"{}\" has {} torch.toolchain() tags: write one. It is the torch of every model in the build.".format(module, count)
