"""grouped: several sources that the compiler reads as one."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")

def grouped(name, groups, sources):
    """Declares files to compile in place of sources, some at a time.

    Half of the time that a source takes to compile goes into its headers, so the compiler reads
    several sources as one. They share one anonymous namespace. A source that no group names is
    compiled alone, so a new one works without being in a list.

    Args:
        name: starts the names of the targets that make the files.
        groups: dict of a group's name to its sources.
        sources: all sources.

    Returns:
        The files to compile, and the sources that these include.
    """
    alone = {source: None for source in sources}
    members = []
    files = []
    for group, grouped_sources in groups.items():
        for source in grouped_sources:
            if source not in alone:
                fail("group {}: there is no {}, or another group has it".format(group, source))
            alone.pop(source)
        members.extend(grouped_sources)
        file = "groups/{}.cc".format(group)
        write_file(
            name = "{}_{}_group".format(name, group),
            out = file,
            content = ['#include "{}/{}"'.format(native.package_name(), source) for source in grouped_sources] + [""],
            visibility = ["//visibility:private"],
        )
        files.append(file)
    return alone.keys() + files, members
