"""The C++ side of aoti_library: compile and link with the user's own C++ toolchain."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

# A Label, as Bazel compares it with those of the rules' toolchains.
RUNTIME_TOOLCHAIN = Label("//toolchain:runtime_toolchain_type")

# Generated code relies on these whatever the user's compilation mode is: unoptimised kernels
# would be useless, and warnings about generated code are nobody's business.
_GENERATED_COPTS = [
    "-std=c++20",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-w",
    "-g0",
    "-DNDEBUG",
    "-DTORCH_INDUCTOR_CPP_WRAPPER",
    "-DSTANDALONE_TORCH_HEADER",
    "-DC10_USING_CUSTOM_GENERATED_MACROS",
]

# The wrapper is long and calls kernels: higher levels cost minutes and gain nothing.
WRAPPER_COPTS = _GENERATED_COPTS + ["-O1"]

# Of what stock PyTorch loads: half the time to compile, 0.1 microseconds more in a call, which
# takes it through libtorch's dispatcher many times. torch's container knows the program's class by
# torch's name alone.
STOCK_COPTS = _GENERATED_COPTS + ["-Og", "-DAOTI_STOCK"]

# No contraction into fused multiply-add: results must not depend on what the compiler fuses.
KERNEL_COPTS = _GENERATED_COPTS + ["-O3", "-ffp-contract=off"]

BINDING_COPTS = ["-std=c++20", "-g0"]

def cc_toolchain_of(ctx):
    """The C++ toolchain and its configured features.

    Args:
        ctx: the rule's context.

    Returns:
        A struct: `toolchain`, `features`.
    """
    toolchain = find_cc_toolchain(ctx)
    return struct(
        toolchain = toolchain,
        features = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
    )

def compile_sources(ctx, cc, name, srcs, copts, deps, public_hdrs = [], additional_inputs = [], includes = []):
    """Compiles C++ sources.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        name: names the objects' folder.
        srcs: list of File.
        copts: list of string.
        deps: list of CcInfo.
        public_hdrs: list of File.
        additional_inputs: list of File that the compiler reads beside them.
        includes: list of string: folders to look for files in.

    Returns:
        (CompilationContext, CompilationOutputs)
    """
    return cc_common.compile(
        actions = ctx.actions,
        name = name,
        cc_toolchain = cc.toolchain,
        feature_configuration = cc.features,
        srcs = srcs,
        public_hdrs = public_hdrs,
        user_compile_flags = copts,
        additional_inputs = additional_inputs,
        includes = includes,
        compilation_contexts = [dep.compilation_context for dep in deps],
    )

def action_folders(folder):
    """The folder of outputs as actions may see it: for flags such as -I and -L, which pass over what isn't there.

    With `--experimental_output_paths=strip`, an action that supports it sees all outputs below one folder, and Bazel
    rewrites the paths in its command line that are artifacts, not those in strings and in sources.

    Args:
        folder: string: a folder below `bazel-out`.

    Returns:
        list of string
    """
    parts = folder.split("/")
    if len(parts) < 2 or parts[0] != "bazel-out":
        return [folder]
    return [folder, "/".join(["bazel-out", "cfg"] + parts[2:])]

def compile_binary(ctx, cc, name, source, template, file, program):
    """Compiles assembly that holds a file's bytes.

    The assembler finds the file in a folder that it is told of (`-I`): sources can't name it, see `action_folders`.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        name: names the object's folder.
        source: File to write.
        template: string, with `{program}` and `{path}`.
        file: File, which an action writes. No file of the source tree may have the same path.
        program: string: the program's id.

    Returns:
        CompilationOutputs
    """
    path = file.path.removeprefix(file.root.path + "/")
    ctx.actions.write(source, template.format(program = program, path = path))
    _, outputs = compile_sources(ctx, cc, name, [source], [], [], additional_inputs = [file], includes = action_folders(file.root.path))
    return outputs

def static_library(ctx, cc, name, outputs, deps, alwayslink = False, linkopts = []):
    """Archives objects, as a library that always links whole programs' tables.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        name: the library's name.
        outputs: list of CompilationOutputs.
        deps: list of CcInfo that the library needs.
        alwayslink: whether all objects are linked, also those that nothing refers to.
        linkopts: list of string.

    Returns:
        LinkingContext
    """
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = name,
        cc_toolchain = cc.toolchain,
        feature_configuration = cc.features,
        compilation_outputs = cc_common.merge_compilation_outputs(compilation_outputs = outputs),
        linking_contexts = [dep.linking_context for dep in deps],
        user_link_flags = linkopts,
        alwayslink = alwayslink,
        disallow_dynamic_library = True,
    )
    return linking_context

def dynamic_library(ctx, cc, name, outputs, linking_contexts = [], linkopts = [], additional_inputs = []):
    """Links a shared library.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        name: the library's name, without `lib` and `.so`.
        outputs: list of CompilationOutputs, all of which are linked.
        linking_contexts: list of LinkingContext.
        linkopts: list of string.
        additional_inputs: list of File.

    Returns:
        File
    """
    return cc_common.link(
        actions = ctx.actions,
        name = name,
        cc_toolchain = cc.toolchain,
        feature_configuration = cc.features,
        compilation_outputs = cc_common.merge_compilation_outputs(compilation_outputs = outputs),
        linking_contexts = linking_contexts,
        output_type = "dynamic_library",
        user_link_flags = linkopts,
        additional_inputs = additional_inputs,
    ).library_to_link.resolved_symlink_dynamic_library

def library_on_libtorch(ctx, cc, name, outputs, libtorch, deps, exports, rpath = None, libraries = [], linkopts = []):
    """Links a shared library that finds libtorch by name, and shows nothing but what it is for.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        name: the library's name, without `lib` and `.so`; its soname too.
        outputs: list of CompilationOutputs, all of which are linked.
        libtorch: CcInfo.
        deps: list of CcInfo that are linked into it.
        exports: File, a version script.
        rpath: where the library looks for libtorch, or None where whoever loads it says so.
        libraries: list of File: other shared libraries that it loads, by name too.
        linkopts: list of string.

    Returns:
        File
    """
    torch_cpu = [f for f in dynamic_libraries(libtorch.linking_context) if f.basename == "libtorch_cpu.so"]
    if not torch_cpu:
        fail("{}: the torch runtime toolchain has no libtorch_cpu.so".format(ctx.label))
    needed = [torch_cpu[0]] + libraries
    return dynamic_library(
        ctx,
        cc,
        name = name,
        outputs = outputs,
        linking_contexts = [dep.linking_context for dep in deps],
        linkopts = [
            "-Wl,-soname,lib{}.so".format(name),
            "-Wl,--no-as-needed",
        ] + ["-L" + folder for file in needed for folder in action_folders(file.dirname)] + [
            "-l:" + file.basename
            for file in needed
        ] + [
            "-Wl,-z,noexecstack",
            "-Wl,--version-script=" + exports.path,
        ] + (["-Wl,-rpath," + rpath] if rpath else []) + linkopts,
        additional_inputs = torch_cpu + libraries + [exports],
    )

def executable(ctx, cc, name, linking_contexts):
    """Links an executable.

    Args:
        ctx: the rule's context.
        cc: what `cc_toolchain_of` returned.
        name: the executable's name.
        linking_contexts: list of LinkingContext.

    Returns:
        File
    """
    return cc_common.link(
        actions = ctx.actions,
        name = name,
        cc_toolchain = cc.toolchain,
        feature_configuration = cc.features,
        linking_contexts = linking_contexts,
        output_type = "executable",
    ).executable

def dynamic_libraries(linking_context):
    """The shared libraries that a LinkingContext brings: what a program needs at run time.

    Args:
        linking_context: LinkingContext.

    Returns:
        list of File
    """
    files = []
    for linker_input in linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            if library.dynamic_library and not library.static_library and not library.pic_static_library:
                files.append(library.dynamic_library)
    return files

def static_libraries(linking_context, owner):
    """The archives that a target itself brings.

    Args:
        linking_context: LinkingContext.
        owner: the target's Label.

    Returns:
        list of File
    """
    files = []
    for linker_input in linking_context.linker_inputs.to_list():
        if linker_input.owner == owner:
            for library in linker_input.libraries:
                files.append(library.pic_static_library or library.static_library)
    return files

def merge_cc_infos(infos):
    """One CcInfo of many.

    Args:
        infos: list of CcInfo.

    Returns:
        CcInfo
    """
    return cc_common.merge_cc_infos(cc_infos = infos, direct_cc_infos = infos)

def make_cc_info(compilation_context, linking_context):
    """A CcInfo of its two halves."""
    return CcInfo(compilation_context = compilation_context, linking_context = linking_context)
