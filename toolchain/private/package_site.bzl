"""Finds the directories of packages in `py_library`-like targets, such as those of a `pip.parse`."""

load("@rules_python//python:py_info.bzl", "PyInfo")

def add_site(args, site):
    """Adds a `--site=<directory>` for each directory that goes onto `sys.path`.

    Args:
      args: the `Args` object of the action.
      site: struct(directories, inside, paths), as `site_of_packages` returns it.
    """
    args.add_all(site.directories, expand_directories = False, format_each = "--site=%s")
    for inside in site.inside:
        args.add_all(
            [inside.directory],
            expand_directories = False,
            format_each = "--site=%s/" + inside.path.replace("%", "%%"),
        )
    args.add_all(site.paths, format_each = "--site=%s")

def _exec_path(ctx, import_path):
    """Turns an entry of PyInfo.imports, relative to the runfiles' root, into a path in the exec root, where actions run."""
    repository, _, rest = import_path.partition("/")
    if repository in ["_main", ctx.workspace_name]:
        return rest or "."
    return "external/" + import_path

def _import_path(ctx, file):
    """The entry of PyInfo.imports for a directory."""
    path = file.short_path
    return path[len("../"):] if path.startswith("../") else "{}/{}".format(ctx.workspace_name, path)

def site_of_packages(ctx, packages):
    """The files of packages, and the directories among them that go onto `sys.path`.

    Args:
      ctx: the rule's context.
      packages: list of targets with PyInfo.

    Returns:
      struct(directories, files, inside, paths)
    """
    imports = depset(transitive = [target[PyInfo].imports for target in packages]).to_list()
    files = depset(transitive = [
        depset(transitive = [
            target[PyInfo].transitive_sources,
            target[DefaultInfo].default_runfiles.files,
            target[DefaultInfo].files,
        ])
        for target in packages
    ])

    # The directory of a directory artifact is below bazel-out, which only the artifact knows.
    directories = {_import_path(ctx, file): file for file in files.to_list() if file.is_directory}
    inside = {path: _inside(directories, path) for path in imports if path not in directories}
    return struct(
        directories = [directories[path] for path in imports if path in directories],
        files = files,
        inside = [place for place in inside.values() if place],
        paths = [_exec_path(ctx, path) for path, place in inside.items() if not place],
    )

def _inside(directories, path):
    """The directory artifact that contains an import path, as those of aspect_rules_py do, and the path below it; or None."""
    parts = path.split("/")
    for count in range(len(parts) - 1, 0, -1):
        directory = directories.get("/".join(parts[:count]))
        if directory:
            return struct(directory = directory, path = "/".join(parts[count:]))
    return None
