"""The actions of some targets as JSON: what docs/actions.md is made of."""

load("//rules/private:names.bzl", "file_stem", "model_name", "program_id")  # buildifier: disable=bzl-visibility
load("//rules/private:ops.bzl", "OPS_SUFFIX")  # buildifier: disable=bzl-visibility
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS", "FAKE_TOOLCHAINS_WITHOUT_LIBTORCH")

_ActionsInfo = provider(
    doc = "A target's actions.",
    fields = {
        "actions": "list of Action",
        "rule": "string: the rule's name",
    },
)

def _actions_aspect_impl(target, ctx):
    # Users write the macro of this rule.
    rule = "aoti_methods_library" if ctx.rule.kind == "_aoti_methods_library" else ctx.rule.kind
    return [_ActionsInfo(actions = target.actions, rule = rule)]

_actions_aspect = aspect(implementation = _actions_aspect_impl)

def _with_toolchains(settings):
    def impl(_settings, _attr):
        return {option: value.split(",") for option, value in settings.items()}

    return transition(implementation = impl, inputs = [], outputs = settings.keys())

_with_fake_toolchains = _with_toolchains(FAKE_TOOLCHAINS)
_with_fake_toolchains_without_libtorch = _with_toolchains(FAKE_TOOLCHAINS_WITHOUT_LIBTORCH)

def _file_name(file):
    """The file's name, with NAME for the model's and ID for the program's."""
    if file.is_source:
        return file.basename
    name = file.basename.replace(program_id(file.owner), "ID")
    for stem in [file_stem(file.owner), model_name(file.owner), file.owner.name.removesuffix(OPS_SUFFIX)]:
        for prefix in ["", "lib"]:
            if name.startswith(prefix + stem):
                model = "NAME_backward" if stem.endswith("_backward") else "NAME"
                return prefix + model + name.removeprefix(prefix + stem)
    return name

def _names(files, owners):
    """The names of files that the targets themselves made, and of source files of the model."""
    return sorted({_file_name(file): None for file in files if file.owner in owners})

def _documented_actions_impl(ctx):
    targets = ctx.attr.targets + ctx.attr.targets_without_libtorch
    owners = {target.label: None for target in targets + ctx.attr.sources}
    actions = []
    groups = {}
    for target in targets:
        info = target[_ActionsInfo]
        for action in info.actions:
            actions.append({
                "mnemonic": action.mnemonic,
                "reads": _names(action.inputs.to_list(), owners),
                "rule": info.rule,
                "writes": _names(action.outputs.to_list(), owners),
            })
        if OutputGroupInfo in target:
            of_rule = groups.setdefault(info.rule, {})
            for group in target[OutputGroupInfo]:
                names = _names(target[OutputGroupInfo][group].to_list(), owners)
                of_rule[group] = sorted({name: None for name in of_rule.get(group, []) + names})
    out = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(out, json.encode_indent({"actions": actions, "groups": groups}, indent = "  ") + "\n")
    return [DefaultInfo(files = depset([out]))]

documented_actions = rule(
    implementation = _documented_actions_impl,
    doc = "Writes the actions and output groups of targets to a JSON file. Nothing of theirs is built.",
    attrs = {
        "sources": attr.label_list(
            doc = "Source files, or what stands for them: they are named among what actions read.",
            allow_files = True,
        ),
        "targets": attr.label_list(
            doc = "The targets, with the fake toolchains.",
            aspects = [_actions_aspect],
            cfg = _with_fake_toolchains,
        ),
        "targets_without_libtorch": attr.label_list(
            doc = "The targets, on a target platform that libtorch and Python's headers are missing for.",
            aspects = [_actions_aspect],
            cfg = _with_fake_toolchains_without_libtorch,
        ),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
