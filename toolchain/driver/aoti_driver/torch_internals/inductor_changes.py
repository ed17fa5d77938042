"""While Inductor generates C++."""

from __future__ import annotations

from aoti_driver.torch_internals.entries import TIME_ONLY, Change, Option

_INDUCTOR = "torch._inductor"
_CODEGEN = f"{_INDUCTOR}.codegen"
_CPP = f"{_CODEGEN}.cpp"
_CPP_WRAPPER = f"{_CODEGEN}.cpp_wrapper_cpu"
_WRAPPER = f"{_CODEGEN}.wrapper"
_CONFIG = f"{_INDUCTOR}.config"

_TEST = "inductor/test_changes.py::test_it_is_needed"
_LOOPS = "Loops run on the runtime's threads, not OpenMP's: see inductor/parallel_loops.py"
_ADDITIONS = "Sums don't depend on the number of threads: see inductor/ordered_additions.py"
_CHECKS = "Checks throw, in the user's words: see inductor/kernel_checks.py"
_SHIMS = "A build says which line of the model needs a function that its runtime lacks"
_NO_PROBE = "No C++ compiler is called or looked for while C++ is generated"
_INT4 = "Inductor's own lowering makes a constant of the group size that no weights file has"

CHANGES = (
    Change(
        f"{_INDUCTOR}.codecache:AotCodeCompiler.compile",
        instead="takes the generated text",
        reason="It would compile and link the text: compiling is an action of its own",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.compile_fx:clone_preserve_strides",
        instead="returns the tensor itself",
        reason="A copy of a buffer's first value is no view of a stored tensor any more",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.compile_fx:_extract_inputs_from_exported_gm",
        instead="keeps the inputs that are numbers",
        reason="Inductor puts None in the place of a size that is an input",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.graph:normalize_name",
        instead='begins the names of constants with "c_"',
        reason="A buffer's name may be a keyword of C++, or a variable of the generated code",
        test=_TEST,
    ),
    Change(
        f"{_CPP_WRAPPER}:normalize_name",
        instead='begins the names of constants with "c_"',
        reason="As in torch._inductor.graph, which must agree",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.graph:GraphLowering.graph_inputs",
        kind="object",
        instead="has the names alone while the constructor is written",
        reason="The constructor's text fails for an input that is a number",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.cpp_builder:cpp_compiler_search",
        instead='returns "c++"',
        reason=_NO_PROBE,
        test="inductor/test_codegen.py::test_bytes_do_not_depend_on_the_host",
    ),
    Change(
        f"{_INDUCTOR}.cpu_vec_isa:valid_vec_isa_list",
        instead="lists the target's instruction set",
        reason="Inductor asks the host's CPU, and compiles a probe",
        test="inductor/test_codegen.py::test_instruction_sets",
    ),
    Change(
        f"{_INDUCTOR}.fx_passes.joint_graph:UniformValueConstantFolder._deduce_value",
        instead="knows no value of a parameter or buffer; computes for GPUs on the CPU",
        reason="New weights would need new code, and a counter in a buffer would stand still",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.pattern_matcher:Match.replace_by_example",
        instead="rewrites no operator that takes a float that varies",
        reason="The pattern of a scaled softmax asks whether the float is negative",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.fx_passes.fuse_attention:gen_register_replacement",
        instead="compares the numbers in patterns of attention, and stays in effect",
        reason="Attention along other dims, or with other masks, would become the usual one",
        test="inductor/test_attention_patterns.py::test_other_attention",
    ),
    Change(
        f"{_INDUCTOR}.ir:AssertScalar.get_free_symbol_uses",
        instead="returns the symbols sorted by name",
        reason="The message of a check on sizes names the first of a set, in the order of hashes",
        test="inductor/test_changes.py::test_checks_name_the_same_symbol_in_every_process",
    ),
    Change(
        "torch.fx.config:do_not_emit_stack_traces",
        instead="is true",
        reason="Each node would have the Python frames that made it: time, and nobody reads them",
        test=TIME_ONLY,
    ),
    Change(
        "torch.fx.graph:Graph._codegen",
        kind="object",
        instead="the plain one, of the driver's own copy of the program",
        reason="Inductor is given flat inputs and outputs, not the user's structures",
        test=_TEST,
    ),
    Change(
        f"{_CPP_WRAPPER}:CppWrapperCpu.codegen_model_constructor",
        instead="runs with the names of inputs alone",
        reason="It fails for an input that is a number",
        test=_TEST,
    ),
    Change(
        f"{_CPP_WRAPPER}:CppWrapperCpu.generate_input_output_runtime_checks",
        instead="writes an empty check where an input is a number",
        reason="It knows tensors only; the runtime checks inputs itself",
        test=_TEST,
    ),
    Change(
        f"{_CPP_WRAPPER}:CppWrapperCpu.generate_fallback_kernel_with_runtime_lookup",
        instead="writes a call of PyTorch's dispatcher",
        reason='It writes one of a "proxy executor", which only torch\'s package loader has',
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.ir:FallbackKernel.export_extern_kernel_node",
        instead="returns the arguments in the schema's order",
        reason="It writes them to a file for the proxy executor",
        test="inductor/test_changes.py::test_nothing_is_written_for_the_proxy_executor",
    ),
    Change(
        "torch._library._out_variant:to_out_variant",
        instead="finds none",
        reason="A custom operator's out= variant has no C function either",
        test=_TEST,
    ),
    Change(
        "torch._library._out_variant:lookup_manual_out_variant",
        instead="finds none",
        reason="A custom operator's out= variant has no C function either",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.decomposition:decompositions",
        kind="table",
        instead="entries for complex tensors of six operators, and for products of float8; none "
        "for adaptive_max_pool2d of a size that varies",
        reason="Inductor makes no kernels for complex numbers, and torch's C interface takes none",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.lowering:lowerings",
        kind="table",
        instead="_weight_int4pack_mm_for_cpu is called as an operator; select checks its index; "
        "adaptive pools and glu are right for sizes that vary; blocks that repeat, and "
        "convolutions and linear layers with what follows them, are called",
        reason=_INT4,
        test="inductor/test_changes.py::test_four_bit_products_are_called_by_name",
    ),
    Change(
        f"{_INDUCTOR}.lowering:fallbacks",
        kind="table",
        instead="_weight_int4pack_mm_for_cpu is one",
        reason=_INT4,
        test="inductor/test_changes.py::test_four_bit_products_are_called_by_name",
    ),
    Change(
        f"{_INDUCTOR}.lowering:pooling_size",
        instead="keeps ceil_mode unless it makes no difference for any size",
        reason="A pool would be without it if it makes no difference for the sample's size",
        test=_TEST,
    ),
    Change(
        f"{_INDUCTOR}.kernel.conv:ir",
        instead="the module with an ExternKernel that leaves constants as they are",
        reason="A convolution's weight would be copied into another layout in every run",
        test=_TEST,
    ),
    *(
        Change(f"{_CPP}:{name}", instead=instead, reason=_LOOPS, test=_TEST)
        for name, instead in (
            ("WorkSharing", "opens a region of the runtime"),
            ("reduction_prefix_array", "adds a pointer, which a lambda can capture"),
            ("CppKernel.codegen_loops_impl", "a region for each loop nest"),
            ("CppKernel.decide_parallel_depth", "doesn't ask for the number of threads"),
            ("CppKernel._gen_parallel_reduction_buffers", "asks the region for its threads"),
            ("LoopNest.mark_parallel", "notes the loops that are split together"),
            ("LoopLevel.lines", "writes the heads of loops that are split together"),
        )
    ),
    Change(
        f"{_INDUCTOR}.ir:StorageBox.should_realize_on_reuse",
        instead="stores what more costly functions than Inductor's give, if several loops read it",
        reason="Each layer's loops would calculate a rotary embedding anew, for each head",
        test="inductor/test_heavy_functions.py::test_they_are_called_once",
    ),
    Change(
        f"{_CPP}:CppKernelProxy.aggregate_reduction_buffers",
        instead="stores what is left at a tiled loop's end by itself, if any loop inside reduces",
        reason="It asks the next loop only, and writes behind the end of a tensor",
        test="inductor/test_reduction_tails.py::test_results",
    ),
    Change(
        f"{_WRAPPER}:PythonWrapperCodegen.can_reuse",
        instead="gives no loop the memory of a concatenation's part",
        reason="Two tensors that are still read would have the same memory",
        test="inductor/test_concatenated_parts.py::test_results",
    ),
    *(
        Change(f"{_CPP}:{name}", instead=instead, reason=_ADDITIONS, test=_TEST)
        for name, instead in (
            ("CppKernel.store", "adds without atomic instructions"),
            ("CppVecKernel.store", "adds without atomic instructions"),
            ("CppTile2DKernel.store", "adds without atomic instructions"),
            (
                "CppScheduling._can_fuse_horizontal_impl",
                "fuses no scattered addition with a reduction",
            ),
            ("CppScheduling._get_outer_loop_fusion_depth", "is 0 for scattered additions"),
        )
    ),
    Change(
        f"{_CPP}:TilingSelect.select_tiling",
        instead="chooses vectors for the end of a loop that computes a function such as exp",
        reason="Its estimate takes a call of exp for one element for as fast as an addition",
        test=_TEST,
    ),
    *(
        Change(f"{_CODEGEN}.{place}", instead=instead, reason=_CHECKS, test=_TEST)
        for place, instead in (
            (
                "common:CSEProxy.indirect_indexing",
                "notes whether a negative index wraps; a GPU's kernels report, in "
                "cuda/index_checks.py",
            ),
            ("common:Kernel.indirect_assert", "throws runtime/core/index_error.h's IndexError"),
            ("cpp:CppKernel.check_bounds", "notes the text of the size"),
            ("cpp:CppVecKernel.indirect_assert", "throws VectorIndexError, but for masked lanes"),
            ("cpp:KernelGroup.codegen_group", "has no flag of integer divisions by zero"),
        )
    ),
    Change(
        f"{_CODEGEN}.cpp_wrapper_cpu:CppWrapperCpu.codegen_dynamic_select_index",
        instead="checks an index that depends on data",
        reason="Memory behind a tensor is read: see inductor/selects.py",
        test=_TEST,
    ),
    *(
        Change(f"{_INDUCTOR}.{place}", instead="notes the call's nodes", reason=_SHIMS, test=_TEST)
        for place in (
            "scheduler:Scheduler.codegen_extern_call",
            "codegen.wrapper:ExternKernelAllocLine.codegen",
            "codegen.wrapper:ExternKernelOutLine.codegen",
            "codegen.wrapper:IndexPutFallbackLine.codegen",
            "codegen.wrapper:ScatterFallbackLine.codegen",
            "utils:IndentedBuffer.writeline",
            "codegen.wrapper:PythonWrapperCodegen.writeline",
        )
    ),
)

_FILES = "The text is taken before a file is made of it: see AotCodeCompiler.compile"
_ALONE = "One process, and nothing that outlives the call"

OPTIONS = (
    Option(
        "torch._functorch.config:decompose_custom_triton_ops",
        "for the CPU, an operator that is written with Triton is what it registered for the CPU",
    ),
    *(
        Option(f"{_CONFIG}:{name}", reason)
        for name, reason in (
            (
                "fallback_random",
                "Inductor's random numbers aren't PyTorch's for a seed (a default)",
            ),
            ("always_keep_tensor_constants", "small constants would become part of the code"),
            ("aot_inductor.package", _FILES),
            ("aot_inductor.output_path", _FILES),
            ("aot_inductor.package_constants_in_so", _FILES),
            ("aot_inductor.package_constants_on_disk_format", _FILES),
            ("aot_inductor.precompile_headers", _FILES),
            (
                "aot_inductor.dynamic_linkage",
                "the class has the program's name, and no C interface",
            ),
            ("aot_inductor.model_name_for_generated_files", "the program's name, for the class"),
            ("aot_inductor.serialized_in_spec", "the structure of the user's inputs"),
            ("aot_inductor.serialized_out_spec", "the structure of the user's outputs"),
            ("cpp.dynamic_threads", "the number of threads of the building machine is in no text"),
            ("cpp.simdlen", "the target's vectors, not the host's"),
            ("freezing", "it packs weights into the code"),
            ("compile_threads", _ALONE),
            ("force_disable_caches", _ALONE),
        )
    ),
)
