"""Running the driver: the one program behind every action of rules_aoti that is not C++."""

load("//toolchain:torch_toolchain.bzl", "add_site_arguments")
load(":names.bzl", "model_label", "model_name", "runfiles_path")

# A Label, as Bazel compares it with those of the rules' toolchains.
TORCH_TOOLCHAIN = Label("//toolchain:toolchain_type")

# The exec groups, for `exec_properties` such as {"export.Pool": "large"}. All other steps, C++ compilation among them, are in
# their rule's default group. docs/toolchain.md tells users.
EXPORT = "export"
CODEGEN = "codegen"
PACKAGE = "package"

_GROUPS = {
    "AotiCodegen": CODEGEN,
    "AotiMergeWeights": PACKAGE,
    "AotiPackWeights": PACKAGE,
    "AotiPackage": PACKAGE,
    "AotiReplaceWeights": PACKAGE,
    "TorchDifferentiate": EXPORT,
    "TorchExport": EXPORT,
    "TorchImport": EXPORT,
    "TorchImportWeights": EXPORT,
    "TorchPackage": PACKAGE,
    "TritonKernel": CODEGEN,
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

def _operator_module_arg(file):
    return "--operator_module=" + runfiles_path(file)

def _triton_module_arg(file):
    return "--triton_module=" + runfiles_path(file)

def loaded_operators(info):
    """The libraries that a step loads before it runs a model's source: list of struct(label, file)."""
    return [struct(label = ops.label, file = ops.exec_library) for ops in info.operators if ops.exec_library]

def program_files(program):
    """What an operator that is a program takes where a model's source runs: list of File."""
    return [program.graph, program.weights, program.manifest]

def operator_program_flags(info):
    """The flags for operators that are programs: their files are among the module's. List of string."""
    return [
        "--operator_program={}={}".format(one.module, ",".join([runfiles_path(file) for file in program_files(one.program)]))
        for ops in info.operators
        for one in ops.programs
    ]

def repository_root(file):
    """The folder of the file's repository, below the runfiles' root."""
    return runfiles_path(file).split("/")[0]

def new_request(ctx, subcommand, spec = None, suffix = ""):
    """One request to the driver. Its functions record a file together with the flag that names it.

    Args:
        ctx: the rule's context.
        subcommand: the driver's subcommand, such as "export".
        spec: what the rule's attributes say, to be encoded as JSON; paths do not belong here.
        suffix: tells a target's requests of the same subcommand apart.

    Returns:
        A struct of functions: `input(flag, file)`, `output(flag, file)`, `unused_inputs_list(flag, file)` for the
        output that lists inputs whose changes don't matter, and `module(info)` for a TorchModuleInfo; and of what they
        recorded, for `run_driver`: `args`, `inputs`, `outputs`, `transitive_inputs`, `unused_inputs_lists`.
    """
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(subcommand)
    inputs, outputs, transitive_inputs, unused_inputs_lists = [], [], [], []
    tritons = []

    def add(flag, file):
        # Args.add() refuses directories.
        args.add_all([file], format_each = flag + "=%s", expand_directories = False)

    def input(flag, file):
        add(flag, file)
        inputs.append(file)

    def output(flag, file):
        add(flag, file)
        outputs.append(file)

    def unused_inputs_list(flag, file):
        output(flag, file)
        unused_inputs_lists.append(file)

    def module(info):
        args.add_all(info.files, map_each = _source_arg, expand_directories = False)
        args.add_all(info.imports, format_each = "--import_root=%s")

        # As in a py_binary, each repository's root is importable after the declared imports.
        args.add_all(info.files, map_each = repository_root, format_each = "--import_root=%s", uniquify = True, expand_directories = False)
        args.add_all(info.weights, map_each = _weight_arg)
        for library in loaded_operators(info):
            input("--operators={}".format(library.label), library.file)
        args.add_all(info.operator_modules, map_each = _operator_module_arg)
        args.add_all(operator_program_flags(info))
        args.add_all(info.triton_modules, map_each = _triton_module_arg)
        if info.triton:
            tritons.append(info.triton)
        transitive_inputs.append(info.files)

    if spec != None:
        input("--spec", write_spec(ctx, subcommand + suffix, spec))
    return struct(
        args = args,
        input = input,
        inputs = inputs,
        module = module,
        output = output,
        outputs = outputs,
        transitive_inputs = transitive_inputs,
        tritons = tritons,
        unused_inputs_list = unused_inputs_list,
        unused_inputs_lists = unused_inputs_lists,
    )

def write_spec(ctx, subcommand, spec):
    """Writes a request's spec to a file.

    Args:
        ctx: the rule's context.
        subcommand: the driver's subcommand; names the file.
        spec: what to encode as JSON.

    Returns:
        File
    """
    file = ctx.actions.declare_file("{}.{}.spec.json".format(model_name(ctx.label), subcommand))
    ctx.actions.write(file, json.encode_indent(spec, indent = "  ") + "\n")
    return file

def check_python_of_triton(ctx, torch, triton):
    """Fails where Triton is for another Python than torch.

    Args:
        ctx: the rule's context.
        torch: TorchToolchainInfo.
        triton: TritonToolchainInfo.
    """
    if torch.python_version != triton.python_version:
        fail((
            "{}: Triton is for Python {}, but the torch toolchain has Python {}. Declare a triton_toolchain with the packages " +
            "of your torch_toolchain, and register it before @torch_toolchains//:all; see docs/toolchain.md of rules_aoti"
        ).format(model_label(ctx.label), triton.python_version, torch.python_version))

def run_driver(ctx, mnemonic, request, progress_message, triton = None):
    """Declares an action that runs one request in the driver, as a worker where Bazel allows it.

    Args:
        ctx: the rule's context; the rule must use TORCH_TOOLCHAIN, and have the exec group of the step.
        mnemonic: the action's mnemonic.
        request: what `new_request` made.
        progress_message: what Bazel shows while it runs.
        triton: TritonToolchainInfo, for a step that generates code for CUDA; a step whose modules need Triton has it
            without. It has workers of its own: torch looks for Triton when it is imported.
    """
    if not triton and request.tritons:
        triton = request.tritons[0]
    group = _GROUPS.get(mnemonic)
    toolchains = ctx.exec_groups[group].toolchains if group else ctx.toolchains
    torch = toolchains[TORCH_TOOLCHAIN].torch

    startup = ctx.actions.args()
    startup.add_all(["-I", "-S"])
    startup.add(torch.driver_main)
    add_site_arguments(startup, torch)
    packages, worker_files = [torch.site], [torch.driver_files, torch.worker_files]
    if triton:
        check_python_of_triton(ctx, torch, triton)
        add_site_arguments(startup, triton)
        packages.append(triton.site)
        worker_files.append(triton.worker_files)
    startup.add(torch.barrier, format = "--barrier=%s")

    ctx.actions.run(
        mnemonic = mnemonic,
        executable = torch.python,
        arguments = [startup, request.args],
        inputs = depset(request.inputs, transitive = request.transitive_inputs + [torch.python_files] + packages),
        outputs = request.outputs,
        # What a worker is started anew for. No source directory may be among it, which crashes Bazel 7.4 to 8.4.
        tools = depset(transitive = worker_files),
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
        unused_inputs_list = request.unused_inputs_lists[0] if request.unused_inputs_lists else None,
    )
