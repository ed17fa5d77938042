"""Unit tests of rules/private/names.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//rules/private:cc.bzl", "action_folders")  # buildifier: disable=bzl-visibility
load(
    # buildifier: disable=bzl-visibility
    "//rules/private:names.bzl",
    "cc_class_name",
    "cc_namespace",
    "identifier",
    "model_label",
    "model_name",
    "program_id",
    "user_label",
)
load("//rules/private:ops.bzl", "ops_lock_error")  # buildifier: disable=bzl-visibility
load("//rules/private:python_sources.bzl", "python_sources")  # buildifier: disable=bzl-visibility

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

def _model_names_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, "encoder", model_name(Label("//models:encoder")))
    asserts.equals(env, "encoder", model_name(Label("//models:encoder.program")))
    asserts.equals(env, "//models:encoder", model_label(Label("//models:encoder.program")))
    asserts.equals(env, "//:encoder", model_label(Label("//:encoder")))

    # Of another module: as the command line and any BUILD file take it.
    external = Label("@bazel_skylib//lib:encoder.program")
    asserts.equals(env, str(external), user_label(external))
    asserts.equals(env, str(external).removesuffix(".program"), model_label(external))
    return unittest.end(env)

_model_names_test = unittest.make(_model_names_impl)

def _python_sources_impl(ctx):
    env = unittest.begin(ctx)
    bytecode, source = depset(["a.pyc"]), depset(["a.py"])

    # rules_python's own PyInfo has both, Bazel's has one.
    both = struct(transitive_original_sources = source, transitive_sources = bytecode)
    asserts.equals(env, ["a.py", "a.pyc"], sorted(depset(transitive = python_sources(both)).to_list()))
    one = struct(transitive_sources = source)
    asserts.equals(env, ["a.py"], depset(transitive = python_sources(one)).to_list())
    return unittest.end(env)

_python_sources_test = unittest.make(_python_sources_impl)

def _action_folders_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ["a/b"], action_folders("a/b"))
    asserts.equals(env, ["bazel-out/k8-opt/bin/a", "bazel-out/cfg/bin/a"], action_folders("bazel-out/k8-opt/bin/a"))
    return unittest.end(env)

_action_folders_test = unittest.make(_action_folders_impl)

def _identifiers_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, "encoder_v2", identifier("encoder_v2"))
    asserts.equals(env, "a_b_c", identifier("a-b.c"))
    asserts.equals(env, "_3d", identifier("3d"))
    return unittest.end(env)

_identifiers_test = unittest.make(_identifiers_impl)

def _cc_names_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, "LlmAoti", cc_class_name("llm_aoti"))
    asserts.equals(env, "Encoder", cc_class_name("encoder"))
    asserts.equals(env, "models", cc_namespace(Label("//models:encoder")))
    asserts.equals(env, "models::my_team::v2", cc_namespace(Label("//models/my-team/v2:encoder")))
    asserts.equals(env, "aoti_models", cc_namespace(Label("//:encoder")))
    return unittest.end(env)

_cc_names_test = unittest.make(_cc_names_impl)

def _program_ids_impl(ctx):
    env = unittest.begin(ctx)
    labels = [
        Label("//models:encoder"),
        Label("//models:encoder_v2"),
        Label("//models/encoder:v2"),
        Label("//models_encoder:v2"),
        Label("//:models_encoder_v2"),
        Label("//:encoder"),
        Label("//:_encoder"),
        Label("//3d:encoder"),
        Label("//models:encoder-v2"),
    ]
    ids = [program_id(label) for label in labels]
    for label, id in zip(labels, ids):
        asserts.equals(env, id, identifier(id), "{} has an id that is no C identifier".format(label))
        asserts.true(env, id[0] in _LETTERS, "{} does not start with a letter".format(id))
    asserts.equals(env, len(ids), len({id: None for id in ids}), "two labels have one id: {}".format(ids))

    # The program's target and the library's are one model.
    asserts.equals(env, ids[0], program_id(Label("//models:encoder.program")))
    return unittest.end(env)

_program_ids_test = unittest.make(_program_ids_impl)

def _ops_locks_impl(ctx):
    env = unittest.begin(ctx)
    for name in ["", "encoder.ops.txt", "locks/encoder.ops.txt"]:
        asserts.equals(env, None, ops_lock_error(name))
    for name in [":encoder.ops.txt", "//models:encoder.ops.txt", "../encoder.ops.txt", "/encoder.ops.txt"]:
        asserts.equals(
            env,
            'ops_lock = "{}": give the name of a file in this package, such as "encoder.ops.txt"'.format(name),
            ops_lock_error(name),
        )
    return unittest.end(env)

_ops_locks_test = unittest.make(_ops_locks_impl)

def names_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    unittest.suite(name, _action_folders_test, _cc_names_test, _identifiers_test, _model_names_test, _ops_locks_test, _program_ids_test, _python_sources_test)
