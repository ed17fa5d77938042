"""The module extension `torch`: the torch toolchain, and Python packages for models and tests.

```starlark
torch = use_extension("@rules_aoti//toolchain:extensions.bzl", "torch")
torch.toolchain(version = "2.13.0", requirements_lock = "//:requirements_lock.txt")  # optional: a default exists
use_repo(torch, "torch_toolchains")

register_toolchains("@torch_toolchains//:all")
```
"""

load("//toolchain/private:hub_repo.bzl", "hub_repo")
load("//toolchain/private:lock.bzl", "lock_of", "locked_versions", "parse_lock")
load("//toolchain/private:python_repo.bzl", "python_repo")
load("//toolchain/private:site_repo.bzl", "site_repo")
load("//toolchain/private:triton_repo.bzl", "triton_repo")
load(
    "//toolchain/private:validate.bzl",
    "check_lock",
    "check_locked_torch",
    "check_one_toolchain",
    "check_python_version",
    "check_repository_name",
    "check_torch_version",
    "pins_torch",
)
load("//toolchain/private:versions.bzl", "DEFAULT_TORCH_VERSION", "TRITON_VERSIONS", "python_versions")

# The repositories that always exist. Tags can't give these names to other repositories.
_HUB = "torch_toolchains"
_SITE = "torch_site"
_PYTHON = "torch_python"
_TRITON = "torch_triton"
_TRITON_WHEELS = "torch_triton_wheels"

def _require(*errors):
    for error in errors:
        if error:
            fail(error)

def _tag_name(tag, module):
    return "torch.{} of module \"{}\"".format(tag, module.name or "<root>")

def _chosen_toolchain(mctx):
    """Returns the tag of the first module that has one: the root comes first, and rules_aoti with its default last."""
    chosen = None
    for module in mctx.modules:
        _require(check_one_toolchain(module.name or "<root>", len(module.tags.toolchain)))
        for tag in module.tags.toolchain:
            name = _tag_name("toolchain()", module)
            _require(
                check_torch_version(name, tag.version),
                check_python_version(name, tag.python, tag.version) if tag.python else None,
            )
            if not chosen:
                chosen = struct(name = name, tag = tag)
    if not chosen:
        fail("no module has a torch.toolchain() tag. rules_aoti's own MODULE.bazel should have one.")
    text = mctx.read(chosen.tag.requirements_lock)
    _require(
        check_lock(chosen.name, chosen.tag.requirements_lock, text),
        check_locked_torch(chosen.name, chosen.tag.requirements_lock, text, chosen.tag.version),
    )
    return chosen.tag

def _python_repo_name(python, toolchain):
    return _PYTHON if python == toolchain.python else "{}_{}".format(_PYTHON, python.replace(".", "_"))

def _triton(mctx, toolchain):
    """The Triton that the toolchain's lock pins; where it pins none, or not torch's, that of rules_aoti's own lock."""
    version = TRITON_VERSIONS[toolchain.version]
    text = mctx.read(toolchain.requirements_lock)
    if locked_versions(parse_lock(text), "triton") != [version]:
        text = mctx.read(Label("//toolchain:requirements.txt"))
    python = "@{}//:python.json".format(_PYTHON)
    triton_repo(
        name = _TRITON,
        lock = lock_of(text, "triton"),
        python = python,
        version = version,
        wheels = _TRITON_WHEELS,
    )
    site_repo(
        name = _TRITON_WHEELS,
        python = python,
        requirements_lock = "@{}//:requirements_lock.txt".format(_TRITON),
    )

def _torch_impl(mctx):
    toolchain = _chosen_toolchain(mctx)
    taken = {name: "rules_aoti itself" for name in [_HUB, _SITE, _PYTHON, _TRITON, _TRITON_WHEELS]}
    pythons = {toolchain.python: True}
    for module in mctx.modules:
        for tag in module.tags.packages:
            name = _tag_name("packages(name = \"{}\")".format(tag.name), module)
            python = tag.python or toolchain.python
            text = mctx.read(tag.requirements_lock)
            _require(
                check_repository_name(name, tag.name, taken),
                check_python_version(name, python) if python else None,
                check_lock(name, tag.requirements_lock, text),
            )
            taken[tag.name] = name
            pythons[python] = True
            same_torch = pins_torch(text, toolchain.version) and python == toolchain.python
            site_repo(
                name = tag.name,
                python = "@{}//:python.json".format(_python_repo_name(python, toolchain)),
                requirements_lock = tag.requirements_lock,
                torch = "@{}//:packages".format(_SITE) if same_torch else "",
            )
    for python in pythons:
        python_repo(
            name = _python_repo_name(python, toolchain),
            interpreter = toolchain.interpreter if python == toolchain.python else None,
            python_versions = [python] if python else python_versions(toolchain.version),
        )
    site_repo(
        name = _SITE,
        python = "@{}//:python.json".format(_PYTHON),
        requirements_lock = toolchain.requirements_lock,
        torch_version = toolchain.version,
    )
    hub_repo(
        name = _HUB,
        cpu = mctx.os.arch,
        os = mctx.os.name,
        python = _PYTHON,
        site = _SITE,
        triton = _TRITON,
    )
    _triton(mctx, toolchain)
    return mctx.extension_metadata(reproducible = True)

_toolchain = tag_class(
    doc = """The torch that exports, compiles and runs models.

A module declares at most one. The root module's takes precedence; without any, rules_aoti's default is used.""",
    attrs = {
        "interpreter": attr.label(
            doc = """The interpreter of the actions, in place of the machine's: a file, with pip and C headers where CPython looks
for them. rules_python's own is `"@python_3_13_host//:python"`, after its `python.toolchain(python_version = "3.13")`.""",
        ),
        "python": attr.string(
            doc = """The Python version of the actions, such as `"3.11"`: an interpreter of this version, with pip and C headers,
must be on the machine (or be `interpreter`). Default: the newest that the machine has and torch has wheels for.""",
        ),
        "requirements_lock": attr.label(
            default = Label("//toolchain:requirements.txt"),
            allow_single_file = True,
            doc = """A requirements file that pins everything with hashes: torch, what AOTInductor imports (see
`toolchain/requirements.in`), and the other packages that your models import. It is installed without resolving
dependencies.""",
        ),
        "version": attr.string(
            default = DEFAULT_TORCH_VERSION,
            doc = "The torch version. The lock must pin the same.",
        ),
    },
)

_packages = tag_class(
    doc = """Python packages from a lock, in a separate repository: `@<name>//:packages` is a `py_library`.

Use this for packages that a model or a test imports and that the toolchain's lock does not have. The lock need not have
torch, because actions have the toolchain's. If it pins the toolchain's version, the toolchain's torch is used and not
installed again. Another version is installed, but the export of a model that depends on it fails.""",
    attrs = {
        "name": attr.string(mandatory = True, doc = "The repository's name. Make it visible with `use_repo`."),
        "python": attr.string(doc = "The Python version, as in `torch.toolchain`. Default: the toolchain's."),
        "requirements_lock": attr.label(
            mandatory = True,
            allow_single_file = True,
            doc = "A requirements file that pins everything with hashes. It is installed without resolving dependencies.",
        ),
    },
)

torch = module_extension(
    implementation = _torch_impl,
    doc = "Makes the torch toolchain (`@torch_toolchains`) and repositories of Python packages.",
    tag_classes = {"packages": _packages, "toolchain": _toolchain},
    arch_dependent = True,
    os_dependent = True,
)
