"""The choice among the machine's Python interpreters, in pure functions."""

def candidate_names(versions):
    """The names of interpreters in a folder of PATH, the best first.

    Args:
      versions: list of versions such as `3.11`, the newest first.

    Returns:
      list of strings
    """
    return ["python" + version for version in versions] + ["python3", "python"]

def candidates(folders, versions, exists):
    """The paths of all interpreters that may be suitable.

    Args:
      folders: list of folders, only absolute ones are used.
      versions: list of versions, the newest first.
      exists: function from a path to True or False.

    Returns:
      list of paths: of each folder in turn, each once
    """
    found = []
    for folder in folders:
        for name in candidate_names(versions):
            path = folder + "/" + name
            if folder.startswith("/") and path not in found and exists(path):
                found.append(path)
    return found

def choose(paths, versions, probe):
    """The interpreter with the newest of the versions; among several, the first.

    Args:
      paths: list of paths.
      versions: list of versions that are suitable, the newest first.
      probe: function from a path to (facts, None), or (None, why it can't be used).

    Returns:
      (facts or None, list of lines that say why others were refused)
    """
    usable = {}
    refused = []
    for path in paths:
        # The name says that it is a version that was already found.
        named = path.rpartition("/")[2].removeprefix("python")
        if named in usable:
            continue
        facts, why = probe(path)
        if facts and facts["version"] not in versions:
            why = "is Python " + facts["version"]
        if why:
            refused.append("  {}: {}".format(path, why))
        elif facts["version"] == versions[0]:
            return facts, refused
        elif facts["version"] not in usable:
            usable[facts["version"]] = facts
    for version in versions:
        if version in usable:
            return usable[version], refused
    return None, refused

def no_python_found(versions, refused, variable):
    """The error message for the case that no interpreter is suitable.

    Args:
      versions: list of versions, the newest first.
      refused: list of lines that say why each was refused.
      variable: the environment variable that names one.

    Returns:
      text
    """
    oldest = versions[-1]
    wanted = oldest if len(versions) == 1 else "{} to {}".format(oldest, versions[0])
    return "\n".join(
        ["No Python {} with pip and C headers was found, which the torch toolchain needs. Looked at:".format(wanted)] +
        (refused or ["  nothing: no python3 in PATH"]) +
        [
            "Install one (Debian, Ubuntu: apt install python3 python3-dev python3-pip; or python{0} python{0}-dev),".format(versions[0]),
            "or name it: --repo_env={}=/path/to/python3,".format(variable),
            "or take one of rules_python in MODULE.bazel: torch.toolchain(interpreter = \"@python_{}_host//:python\"),".format(
                versions[0].replace(".", "_"),
            ),
            "or ask for another version there: torch.toolchain(python = \"...\").",
        ],
    )
