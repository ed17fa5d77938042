"""Unit tests of rules/private/names.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(
    # buildifier: disable=bzl-visibility
    "//rules/private:names.bzl",
    "cc_class_name",
    "cc_namespace",
    "identifier",
    "model_label",
    "model_name",
    "program_id",
)

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

def _model_names_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, "encoder", model_name(Label("//models:encoder")))
    asserts.equals(env, "encoder", model_name(Label("//models:encoder.program")))
    asserts.equals(env, "//models:encoder", model_label(Label("//models:encoder.program")))
    asserts.equals(env, "//:encoder", model_label(Label("//:encoder")))
    return unittest.end(env)

_model_names_test = unittest.make(_model_names_impl)

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

def names_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    unittest.suite(name, _cc_names_test, _identifiers_test, _model_names_test, _program_ids_test)
