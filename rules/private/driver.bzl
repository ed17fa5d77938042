"""Running the driver: the one program behind every action of rules_aoti that is not C++."""

load("//toolchain:torch_toolchain.bzl", "add_site_arguments")
load(":names.bzl", "model_name", "runfiles_path")

# A Label, as Bazel compares it with those of the rules' toolchains.
TORCH_TOOLCHAIN = Label("//toolchain:toolchain_type")

# The exec groups, for `exec_properties` such as {"export.Pool": "large"}. All other steps, C++ compilation among them, are in
# their rule's default group. docs/toolchain.md tells users.
EXPORT = "export"
CODEGEN = "codegen"
PACKAGE = "package"

_GROUPS = {
    "AotiCodegen": CODEGEN,
    "AotiPackWeights": PACKAGE,
    "AotiPackage": PACKAGE,
    "AotiReplaceWeights": PACKAGE,
    "TorchExport": EXPORT,
    "TorchImport": EXPORT,
    "TorchImportWeights": EXPORT,
    "TorchPackage": PACKAGE,
}

def driver_exec_groups(*names):
    """The exec groups of a rule whose actions are steps of the driver.

    Args:
        *names: EXPORT, CODEGEN, PACKAGE: those that its steps belong to.

    Returns:
        dict, for `rule(exec_groups = ...)`
    """
    return {name: exec_group(toolchains = [TORCH_TOOLCHAIN]) for name in names}

def _small(_os, _inputs):
    return {"cpu": 1, "memory": 64}

def _export_resources(_os, _inputs):
    return {"cpu": 1, "memory": 1600}

def _codegen_resources(_os, _inputs):
    return {"cpu": 1, "memory": 700}

def _package_resources(_os, _inputs):
    return {"cpu": 1, "memory": 1300}

# The most that a step of this kind took for the largest model here, of 135 million float32 weights, rounded up: 1,507 MiB to
# export, 610 to generate code, 808 to 1,257 to write packages and packed weights, 23 for the rest. Bazel starts no more steps
# than fit.
_RESOURCES = {
    CODEGEN: _codegen_resources,
    EXPORT: _export_resources,
    PACKAGE: _package_resources,
}

def _source_arg(file):
    return "--source={}={}".format(runfiles_path(file), file.path)

def _weight_arg(file):
    return "--weight={}={}".format(runfiles_path(file), file.path)

def _repository_root(file):
    return runfiles_path(file).split("/")[0]

def add_module(args, module):
    """Adds a TorchModuleInfo to the driver's arguments.

    Args:
        args: the Args that the driver's flags are added to.
        module: TorchModuleInfo.
    """
    args.add_all(module.files, map_each = _source_arg, expand_directories = False)
    args.add_all(module.imports, format_each = "--import_root=%s")

    # As in a py_binary, each repository's root is importable after the declared imports.
    args.add_all(module.files, map_each = _repository_root, format_each = "--import_root=%s", uniquify = True, expand_directories = False)
    args.add_all(module.weights, map_each = _weight_arg)

def new_request(ctx, subcommand, spec = None, suffix = ""):
    """One request to the driver.

    Args:
        ctx: the rule's context.
        subcommand: the driver's subcommand, such as "export".
        spec: what the rule's attributes say, to be encoded as JSON; paths do not belong here.
        suffix: tells a target's requests of the same subcommand apart.

    Returns:
        A struct: `args` (an Args, passed as a params file; add `--flag=value` entries to it) and
        `inputs` (list of File).
    """
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(subcommand)
    if spec == None:
        return struct(args = args, inputs = [])
    return struct(args = args, inputs = [write_spec(ctx, subcommand + suffix, spec, args)])

def write_spec(ctx, subcommand, spec, args = None):
    """Writes a request's spec to a file.

    Args:
        ctx: the rule's context.
        subcommand: the driver's subcommand; names the file.
        spec: what to encode as JSON.
        args: Args that get `--spec=<file>`, or None.

    Returns:
        File
    """
    file = ctx.actions.declare_file("{}.{}.spec.json".format(model_name(ctx.label), subcommand))
    ctx.actions.write(file, json.encode_indent(spec, indent = "  ") + "\n")
    if args:
        args.add(file, format = "--spec=%s")
    return file

def run_driver(ctx, mnemonic, request, inputs, outputs, progress_message, unused_inputs = None):
    """Declares an action that runs one request in the driver, as a worker where Bazel allows it.

    Args:
        ctx: the rule's context; the rule must use TORCH_TOOLCHAIN, and have the exec group of the step.
        mnemonic: the action's mnemonic.
        request: what `new_request` made.
        inputs: depset of File: what the request's flags name.
        outputs: list of File.
        progress_message: what Bazel shows while it runs.
        unused_inputs: File or None: one of `outputs`, which lists inputs whose changes don't matter.
    """
    group = _GROUPS.get(mnemonic)
    toolchains = ctx.exec_groups[group].toolchains if group else ctx.toolchains
    torch = toolchains[TORCH_TOOLCHAIN].torch

    startup = ctx.actions.args()
    startup.add_all(["-I", "-S"])
    startup.add(torch.driver_main)
    add_site_arguments(startup, torch)
    startup.add(torch.barrier, format = "--barrier=%s")

    ctx.actions.run(
        mnemonic = mnemonic,
        executable = torch.python,
        arguments = [startup, request.args],
        inputs = depset(request.inputs, transitive = [inputs, torch.python_files, torch.site]),
        outputs = outputs,
        # What a worker is started anew for. No source directory may be among it, which crashes Bazel 7.4 to 8.4.
        tools = depset(transitive = [torch.driver_files, torch.worker_files]),
        env = {},
        exec_group = group,
        execution_requirements = {
            "block-network": "1",
            "requires-worker-protocol": "json",
            "supports-workers": "1",
            "worker-key-mnemonic": "AotiDriver",
        },
        progress_message = progress_message,
        resource_set = _RESOURCES.get(group, _small),
        toolchain = TORCH_TOOLCHAIN,
        unused_inputs_list = unused_inputs,
    )
