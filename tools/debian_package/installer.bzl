"""Repository rules whose installer takes programs out of Debian's packages (suite.py)."""

# What is fetched depends on these too.
_VARIABLES = ["DEBIAN_MIRROR"]

INSTALLER_ATTRS = {
    "_airgap": attr.label_list(
        default = [
            Label("//tools/airgap:{}.py".format(name))
            for name in ["base", "deb", "debian", "fetch", "store", "truststore"]
        ],
        allow_files = True,
    ),
    "_python": attr.label(default = Label("@torch_python//:python.json"), allow_single_file = True),
    "_suite": attr.label(default = Label("//tools/debian_package:suite.py"), allow_single_file = True),
}

def run_installer(rctx, installer, arguments, helpers = []):
    """Runs an installer in the repository's folder; its failure is the repository's.

    Args:
        rctx: the context of a repository rule with INSTALLER_ATTRS.
        installer: Label of the Python program.
        arguments: list of string.
        helpers: labels of further modules that it imports.
    """
    variables = {name: rctx.getenv(name, "") for name in _VARIABLES}
    for source in [installer, rctx.attr._suite] + helpers + rctx.attr._airgap:
        rctx.watch(rctx.path(source))
    python = json.decode(rctx.read(rctx.attr._python))["executable"]
    folders = [rctx.path(rctx.attr._suite).dirname.dirname] + [rctx.path(helper).dirname for helper in helpers]
    result = rctx.execute(
        [python, "-B", installer] + arguments,
        environment = {name: value for name, value in variables.items() if value} | {
            "PYTHONPATH": ":".join([str(folder) for folder in folders]),
        },
        quiet = True,
        timeout = 3600,
    )
    if result.return_code:
        fail("@{}: {}{}".format(rctx.name, result.stdout, result.stderr))
