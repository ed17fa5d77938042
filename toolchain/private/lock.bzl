"""Reads pip requirements files, as far as a lock needs it. Pure functions: tested without Bazel's repositories."""

def normalize_name(name):
    """The normalized name of a package, as in PEP 503.

    Args:
      name: a distribution's name as somebody wrote it.

    Returns:
      lower case, with single dashes.
    """
    name = name.lower().replace("_", "-").replace(".", "-")
    for _ in range(len(name)):
        if "--" not in name:
            break
        name = name.replace("--", "-")
    return name

def _strip_comment(line):
    # A "#" starts a comment at the line's start or after white space: in a URL it starts a fragment.
    if line.startswith("#"):
        return ""
    for mark in [" #", "\t#"]:
        at = line.find(mark)
        if at >= 0:
            line = line[:at]
    return line.strip()

def _logical_lines(text):
    lines = []
    pending = ""
    start = 0
    number = 0
    for raw in text.replace("\r\n", "\n").split("\n"):
        number += 1
        line = _strip_comment(raw.strip())
        if not line and not raw.strip().startswith("#"):
            # An empty line ends a continued line; a comment between its parts does not.
            if pending:
                lines.append((start, pending.strip()))
                pending = ""
            continue
        if not pending:
            start = number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        if line:
            lines.append((start, (pending + line).strip()))
            pending = ""
    if pending:
        lines.append((start, pending.strip()))
    return lines

def parse_lock(text):
    """Parses the text of a requirements file.

    Args:
      text: the file's content.

    Returns:
      struct(packages, problems): `packages` is a list of struct(name, version, marker, hashes, line), `problems` a list of
      texts that each say what pip's `--require-hashes` would refuse, or what a lock must not hold.
    """
    packages = []
    problems = []
    for number, line in _logical_lines(text):
        if line.startswith("-"):
            option = line.split(" ")[0].split("=")[0]
            if option in ["-r", "-c", "-e", "--requirement", "--constraint", "--editable"]:
                problems.append("line {}: `{}` isn't possible in a lock: write every package into this one file".format(
                    number,
                    option,
                ))
            continue
        words = [w for w in line.replace("\t", " ").split(" ") if w]
        hashes = [w[len("--hash="):] for w in words if w.startswith("--hash=")]
        spec = " ".join([w for w in words if not w.startswith("--hash=")])
        spec, _, marker = spec.partition(";")
        url = ""
        if "@" in spec:
            name, _, url = spec.partition("@")
            version = ""
        elif "==" in spec:
            name, _, version = spec.partition("==")
        else:
            problems.append("line {}: `{}` isn't pinned: write `name==version --hash=sha256:...`".format(number, spec.strip()))
            continue
        if not hashes and "#sha256=" not in url:
            problems.append("line {}: `{}` has no `--hash=sha256:...`".format(number, spec.strip()))
            continue
        packages.append(struct(
            name = normalize_name(name.partition("[")[0].strip()),
            version = version.strip().lstrip("="),
            marker = marker.strip(),
            hashes = hashes,
            line = number,
        ))
    return struct(packages = packages, problems = problems)

def lock_of(text, name):
    """The part of a requirements file for one package: its lines, and the options for pip.

    Args:
      text: the file's content.
      name: the package.

    Returns:
      text of a lock
    """
    lines = [line for _, line in _logical_lines(text)]
    return "".join([line + "\n" for line in lines if line.startswith("-") or _package_name(line) == normalize_name(name)])

def _package_name(line):
    for mark in ["==", "@", "[", ";", " "]:
        line = line.partition(mark)[0]
    return normalize_name(line.strip())

def locked_versions(lock, name):
    """The versions of a package that a lock pins (several, if environment markers choose among them).

    Args:
      lock: what `parse_lock` returned.
      name: the package.

    Returns:
      a list of versions, each once, in the file's order.
    """
    versions = []
    for package in lock.packages:
        if package.name == normalize_name(name) and package.version not in versions:
            versions.append(package.version)
    return versions
