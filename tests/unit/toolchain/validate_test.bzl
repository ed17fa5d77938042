"""What the `torch` module extension says about a bad tag."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//toolchain/private:lock.bzl", "lock_of", "locked_versions", "parse_lock")  # buildifier: disable=bzl-visibility
load(
    "//toolchain/private:validate.bzl",
    "check_lock",
    "check_locked_torch",
    "check_one_toolchain",
    "check_python_version",
    "check_repository_name",
    "check_torch_version",
    "pins_torch",
)  # buildifier: disable=bzl-visibility

_TAG = "torch.toolchain() of module \"app\""
_KNOWN = {"2.13.0": ["3.11", "3.12"], "2.9.0": ["3.11"]}
_HASH = "--hash=sha256:" + "0" * 64

def _torch_version_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, check_torch_version(_TAG, "2.13.0", _KNOWN))
    asserts.equals(
        env,
        _TAG + ": version = \"2.7.1\" is not a torch that rules_aoti knows. Available: 2.9.0, 2.13.0.",
        check_torch_version(_TAG, "2.7.1", _KNOWN),
    )
    return unittest.end(env)

torch_version_test = unittest.make(_torch_version_test_impl)

def _python_version_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, check_python_version(_TAG, "3.12", "2.13.0", _KNOWN))
    asserts.equals(env, None, check_python_version(_TAG, "3.9"))
    for malformed in ["3", "3.11.7", "python3.11", "2.7", "3.x", ""]:
        asserts.equals(
            env,
            _TAG + ": python = \"" + malformed + "\" is not of the form \"3.N\", such as \"3.11\".",
            check_python_version(_TAG, malformed, "2.13.0", _KNOWN),
        )
    asserts.equals(
        env,
        _TAG + ": torch 2.13.0 has no wheels for python = \"3.9\". Available: 3.11, 3.12.",
        check_python_version(_TAG, "3.9", "2.13.0", _KNOWN),
    )
    return unittest.end(env)

python_version_test = unittest.make(_python_version_test_impl)

def _repository_name_test_impl(ctx):
    env = unittest.begin(ctx)
    taken = {"timm": "torch.packages(name = \"timm\") of module \"other\""}
    asserts.equals(env, None, check_repository_name(_TAG, "my-deps_1.2", taken))
    asserts.equals(
        env,
        _TAG + ": name = \"timm\" is taken by torch.packages(name = \"timm\") of module \"other\". Choose another name.",
        check_repository_name(_TAG, "timm", taken),
    )
    for bad in ["", "1st", "a b", "a/b", "_a"]:
        asserts.equals(
            env,
            _TAG + ": name = \"" + bad + "\" is not a repository name: use letters, digits, `_`, `-` and `.`, a letter first.",
            check_repository_name(_TAG, bad, taken),
        )
    return unittest.end(env)

repository_name_test = unittest.make(_repository_name_test_impl)

def _one_toolchain_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, check_one_toolchain("app", 0))
    asserts.equals(env, None, check_one_toolchain("app", 1))
    asserts.equals(
        env,
        "module \"app\" has 2 torch.toolchain() tags: write one. It is the torch of every model in the build.",
        check_one_toolchain("app", 2),
    )
    return unittest.end(env)

one_toolchain_test = unittest.make(_one_toolchain_test_impl)

def _lock_test_impl(ctx):
    env = unittest.begin(ctx)
    good = "# made by hand\n--no-binary :none:\nnumpy==2.4.6 \\\n    {0} \\\n    # another machine's\n    {0}\ntorch==2.13.0 {0}\n".format(_HASH)
    asserts.equals(env, None, check_lock(_TAG, "//:lock.txt", good))
    asserts.equals(
        env,
        "\n".join([
            _TAG + ": requirements_lock = \"//:lock.txt\" is not a lock with hashes:",
            "  line 1: `numpy==2.4.6` has no `--hash=sha256:...`",
            "  line 2: `sympy>=1.13` isn't pinned: write `name==version --hash=sha256:...`",
            "  line 3: `-r` isn't possible in a lock: write every package into this one file",
            "Make one with `pip-compile --generate-hashes` or `uv pip compile --generate-hashes`.",
        ]),
        check_lock(_TAG, "//:lock.txt", "numpy==2.4.6\nsympy>=1.13 {}\n-r more.txt\n".format(_HASH)),
    )
    many = check_lock(_TAG, "//:lock.txt", "\n".join(["p{}==1".format(i) for i in range(9)]))
    asserts.true(env, "  line 5: `p4==1` has no" in many, many)
    asserts.true(env, "\n  and 4 more\n" in many, many)
    asserts.false(env, "line 6" in many, many)
    asserts.equals(
        env,
        _TAG + ": requirements_lock = \"//:lock.txt\" holds no package.",
        check_lock(_TAG, "//:lock.txt", "# nothing\n"),
    )
    return unittest.end(env)

lock_test = unittest.make(_lock_test_impl)

def _locked_torch_test_impl(ctx):
    env = unittest.begin(ctx)
    for pinned in ["2.13.0", "2.13.0+cpu"]:
        asserts.equals(env, None, check_locked_torch(_TAG, "//:lock.txt", "Torch=={} {}\n".format(pinned, _HASH), "2.13.0"))
    asserts.equals(
        env,
        _TAG + ": requirements_lock = \"//:lock.txt\" doesn't pin torch: the environment of the actions must hold torch==2.13.0 itself.",
        check_locked_torch(_TAG, "//:lock.txt", "torchvision==0.28.0 {}\n".format(_HASH), "2.13.0"),
    )
    asserts.equals(
        env,
        _TAG + ": requirements_lock = \"//:lock.txt\" pins torch 2.9.1, but version = \"2.13.0\". Make the two agree.",
        check_locked_torch(_TAG, "//:lock.txt", "torch==2.9.1 {}\n".format(_HASH), "2.13.0"),
    )
    asserts.true(env, pins_torch("torch==2.13.0+cpu {}\n".format(_HASH), "2.13.0"))
    asserts.false(env, pins_torch("torch==2.13.0 {0}\ntorch==2.12.0 {0}\n".format(_HASH), "2.13.0"))
    asserts.false(env, pins_torch("numpy==2.13.0 {}\n".format(_HASH), "2.13.0"))
    return unittest.end(env)

locked_torch_test = unittest.make(_locked_torch_test_impl)

def _parse_lock_test_impl(ctx):
    env = unittest.begin(ctx)
    lock = parse_lock("\r\n".join([
        "Jinja2[i18n]==3.1.6 ; python_version >= \"3.11\" \\",
        "    " + _HASH + " \\",
        "    --hash=sha256:" + "1" * 64 + "  # via torch",
        "",
        "typing_extensions==4.16.0 " + _HASH,
        "my.pkg @ https://example.org/my_pkg-1.0-py3-none-any.whl#sha256=" + "2" * 64,
    ]))
    asserts.equals(env, [], lock.problems)
    asserts.equals(env, ["jinja2", "typing-extensions", "my-pkg"], [p.name for p in lock.packages])
    asserts.equals(env, "3.1.6", lock.packages[0].version)
    asserts.equals(env, "python_version >= \"3.11\"", lock.packages[0].marker)
    asserts.equals(env, 2, len(lock.packages[0].hashes))
    asserts.equals(env, ["4.16.0"], locked_versions(lock, "Typing.Extensions"))
    return unittest.end(env)

parse_lock_test = unittest.make(_parse_lock_test_impl)

def _lock_of_test_impl(ctx):
    env = unittest.begin(ctx)
    text = "\n".join([
        "--extra-index-url https://example.org/simple",
        "torch==2.13.0 \\",
        "    " + _HASH,
        "triton==3.7.1 ; platform_machine == 'x86_64' \\",
        "    # via torch",
        "    " + _HASH,
        "triton-tools==1.0 " + _HASH,
        "Triton[all] @ https://example.org/triton.whl#sha256=00",
    ])
    asserts.equals(
        env,
        "\n".join([
            "--extra-index-url https://example.org/simple",
            "triton==3.7.1 ; platform_machine == 'x86_64'  " + _HASH,
            "Triton[all] @ https://example.org/triton.whl#sha256=00",
            "",
        ]),
        lock_of(text, "triton"),
    )
    asserts.equals(env, "--extra-index-url https://example.org/simple\n", lock_of(text, "numpy"))
    return unittest.end(env)

lock_of_test = unittest.make(_lock_of_test_impl)

def validate_test_suite(name):
    """All tests of this file.

    Args:
      name: the suite's name.
    """
    unittest.suite(
        name,
        torch_version_test,
        python_version_test,
        repository_name_test,
        one_toolchain_test,
        lock_test,
        locked_torch_test,
        lock_of_test,
        parse_lock_test,
    )
