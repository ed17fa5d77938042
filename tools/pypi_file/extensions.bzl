"""Files out of wheels: models' weights and test data, which this repository doesn't hold itself.

```starlark
pypi_file = use_extension("//tools/pypi_file:extensions.bzl", "pypi_file", dev_dependency = True)
pypi_file.wheel(
    name = "weights",
    files = {"package/weights.npz": "weights.npz"},
    package = "some-package",
    sha256 = "...",
    version = "1.0",
)
use_repo(pypi_file, "weights")  # @weights//:weights.npz
```
"""

_BUILD = """\
package(default_visibility = ["//visibility:public"])

exports_files({files})

filegroup(
    name = "files",
    srcs = {files},
)
"""

def _wheel_repo_impl(rctx):
    rctx.watch(rctx.path(rctx.attr._pip_runner))
    python = json.decode(rctx.read(rctx.attr._python))["executable"]
    options = []
    if rctx.attr.platform:
        options = ["--platform", rctx.attr.platform, "--python-version", rctx.attr.python_version, "--implementation", "cp"]
    rctx.file("request.json", json.encode(struct(
        files = rctx.attr.files,
        pip_options = options,
        requirement = "{}=={} --hash=sha256:{}".format(rctx.attr.package, rctx.attr.version, rctx.attr.sha256),
    )))
    rctx.report_progress("fetching {} {}".format(rctx.attr.package, rctx.attr.version))
    result = rctx.execute(
        [python, "-B", rctx.attr._extractor, "request.json"],
        environment = {"PYTHONPATH": str(rctx.path(rctx.attr._pip_runner).dirname)},
        quiet = True,
        timeout = 1800,
    )
    if result.return_code:
        fail("@{}: {}{}".format(rctx.name, result.stdout, result.stderr))
    rctx.delete("request.json")
    rctx.file("BUILD.bazel", _BUILD.format(files = repr(sorted(rctx.attr.files.values()))))

_ATTRS = {
    "files": attr.string_dict(mandatory = True, doc = "Path in the wheel -> name in the repository."),
    "package": attr.string(mandatory = True, doc = "The package's name in the index."),
    "platform": attr.string(doc = "For a wheel with native code: the platform that it is made for, whatever this one is."),
    "python_version": attr.string(default = "3.11", doc = "With `platform`: the Python that the wheel is made for."),
    "sha256": attr.string(mandatory = True, doc = "The wheel's hash."),
    "version": attr.string(mandatory = True, doc = "The package's version."),
}

_wheel_repo = repository_rule(
    implementation = _wheel_repo_impl,
    doc = "Files of one wheel.",
    attrs = _ATTRS | {
        "_extractor": attr.label(default = Label("//tools/pypi_file:extract_wheel.py"), allow_single_file = True),
        "_pip_runner": attr.label(default = Label("//toolchain/private:pip_runner.py"), allow_single_file = True),
        "_python": attr.label(default = Label("@torch_python//:python.json"), allow_single_file = True),
    },
)

def _pypi_file_impl(mctx):
    for module in mctx.modules:
        for tag in module.tags.wheel:
            _wheel_repo(
                name = tag.name,
                files = tag.files,
                package = tag.package,
                platform = tag.platform,
                python_version = tag.python_version,
                sha256 = tag.sha256,
                version = tag.version,
            )
    return mctx.extension_metadata(reproducible = True)

pypi_file = module_extension(
    implementation = _pypi_file_impl,
    doc = "Repositories with files out of wheels.",
    tag_classes = {
        "wheel": tag_class(
            doc = "One wheel, fetched by its hash.",
            attrs = _ATTRS | {"name": attr.string(mandatory = True, doc = "The repository's name.")},
        ),
    },
)
