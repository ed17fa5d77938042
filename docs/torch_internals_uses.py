"""What the driver reads and calls of PyTorch that isn't public, and doesn't change.

Public names of classes that only Inductor makes are here too: PyTorch changes them as freely.
"""

from __future__ import annotations

from aoti_driver.torch_internals.entries import Use

_INDUCTOR = "torch._inductor"
_CODEGEN = f"{_INDUCTOR}.codegen"

USES = (
    Use(
        "torch._ops",
        "OpOverload OpOverload._schema OpOverload._op_dk OpOverloadPacket "
        "OpOverloadPacket._qualified_op_name HigherOrderOperator",
        "the operators that a program calls",
    ),
    Use(
        "torch._library.fake_class_registry",
        "global_fake_class_registry global_fake_class_registry.has_impl "
        "global_fake_class_registry.get_impl",
        "the fake class of a custom class",
    ),
    Use(
        "torch",
        "ScriptObject ScriptObject._type ScriptObject._method_names",
        "objects of custom classes",
    ),
    Use(
        "torch._library.simple_registry",
        "singleton",
        "the fake kernel of torchvision's nms, which is replaced",
    ),
    Use(
        "torch.fx.experimental.proxy_tensor",
        "get_proxy_mode",
        "whether operators are recorded, or only their shapes computed",
    ),
    Use(
        "torch._C",
        "DispatchKey _dispatch_dump _dispatch_dump_table _dispatch_has_kernel_for_dispatch_key",
        "whether an operator is made of others, and whether it is registered in Python",
    ),
    Use("torch._C", "_jit_resolve_packet", "the overload that a call is for"),
    Use(
        "torch._C",
        "parse_schema _dispatch_get_all_op_names",
        "the operators that a library registers, and those of a program that are to be declared",
    ),
    Use(
        "torch._subclasses.fake_tensor",
        "UnsupportedOperatorException",
        "torch's error for an operator without a fake kernel",
    ),
    Use(
        "torch._library.triton",
        "triton_ops_to_kernels",
        "the operators that are written with Triton",
    ),
    Use(
        "torch._library.custom_ops",
        "OPDEFS CustomOpDef._backend_fns",
        "the body of an operator that is registered in Python",
    ),
    Use(
        "torch._C",
        "_ConvBackend _ConvBackend.Slow3d _ConvBackend.Empty _ConvBackend.MkldnnEmpty",
        "who computes a convolution, from which the layout of its result follows",
    ),
    Use(
        "torch._subclasses",
        "FakeTensorMode FakeTensorMode.cache_clear",
        "to forget layouts that were predicted before",
    ),
    Use("torch", "Tensor._version", "whether forward() writes to a parameter"),
    Use("torch", "UntypedStorage._cdata", "whether fake tensors share memory"),
    Use(
        "torch",
        "ops.aten._assert_scalar.default ops.aten._local_scalar_dense.default "
        "ops.aten._to_copy.default ops.aten._weight_int4pack_mm_for_cpu "
        "ops.aten._weight_int8pack_mm.default "
        "ops.aten._adaptive_avg_pool2d ops.aten._scaled_mm.default ops.aten._unsafe_index "
        "ops.aten._addmm_activation.default ops.aten._int_mm.default",
        "operators whose names are private",
    ),
    Use(
        "torch.utils._pytree",
        "TreeSpec keystr tree_flatten tree_flatten_with_path tree_leaves tree_map_only "
        "tree_unflatten treespec_loads _SerializeNodeDef NO_SERIALIZED_TYPE_NAME_FOUND "
        "SUPPORTED_NODES.get",
        "structures of inputs and outputs",
    ),
    Use(
        "torch._dispatch.python",
        "enable_python_dispatcher",
        "to run operators that are made of others with fake tensors",
    ),
    Use(
        "torch.utils._python_dispatch",
        "is_traceable_wrapper_subclass",
        "whether a parameter is a tensor subclass, such as torchao's",
    ),
    Use(
        "torch._functorch._aot_autograd.subclass_parametrization",
        "unwrap_tensor_subclass_parameters",
        "the tensors in a tensor subclass, as torchao does it",
    ),
    Use(
        "torch.nn",
        "Module._load_from_state_dict Module._load_state_dict_pre_hooks "
        "Module._load_state_dict_post_hooks",
        "whether a module has code of its own for loading a state dict",
    ),
    Use("torch.utils._ordered_set", "OrderedSet", "what Inductor keeps symbols in"),
    Use(
        "torch.utils._sympy.functions",
        "FloatTrueDiv FloorDiv IntTrueDiv Max Min Mod ToFloat",
        "the functions in the expressions of sizes",
    ),
    Use(
        "torch.utils._sympy.symbol",
        "SymT symbol_is_type",
        "which symbols of an index are sizes",
    ),
    Use("torch.utils._sympy.printers", "PythonPrinter", "the text of an expression of sizes"),
    Use(
        "sympy.printing.printer",
        "Printer._as_ordered_terms",
        "the order in which a sum is written",
    ),
    Use(
        "torch.utils._sympy.interp",
        "sympy_interp",
        "an expression of sizes, where those of the dims are symbolic in another trace",
    ),
    Use("torch.utils._sympy.reference", "PythonReferenceAnalysis", "the same"),
    Use(
        "torch._functorch.partitioners",
        "min_cut_rematerialization_partition",
        "what the forward pass of training keeps for the backward pass",
    ),
    Use("torch.utils._sympy.value_ranges", "ValueRanges bound_sympy", "ranges of sizes"),
    Use("torch.export", "ExportedProgram._guards_code", "what a program assumes about sizes"),
    Use(
        "torch.fx.experimental.symbolic_shapes",
        "ShapeEnv.guards ShapeEnv.var_to_range ShapeEnv.backed_var_to_val "
        "ShapeEnv.bound_sympy ShapeEnv.create_symintnode",
        "guards and sizes while a model is traced and blocks are compared; sample sizes that a "
        "loaded program lacks",
    ),
    Use(
        "torch._guards",
        "TracingContext.extract_stack detect_fake_mode",
        "the line that a strict export interprets; fake tensors for nodes that are added",
    ),
    Use(
        "torch._export.serde.serialize",
        "serialize serialize_tensor_meta serialize_torch_artifact ExportedProgramDeserializer "
        "EnumEncoder SerializeError _SYM_OPS _dataclass_to_dict",
        "programs as files, without their weights",
    ),
    Use(
        "torch._export.serde.schema",
        "ExportedProgram PayloadConfig PayloadMeta TensorMeta",
        "programs and the members of an archive, as data",
    ),
    Use("torch._export.serde.union", "_Union", "the parts of a program that have several types"),
    Use(f"{_INDUCTOR}.compile_fx", "compile_fx_aot", "code generation itself"),
    Use(f"{_INDUCTOR}.config", "get_config_copy", "which options there are"),
    Use(
        f"{_INDUCTOR}.cpu_vec_isa",
        "VecAVX2 VecAVX512 VecNEON VecISA.bit_width VecISA.__hash__",
        "the instruction sets",
    ),
    Use(f"{_INDUCTOR}.decomposition", "fast_random_decomps", "a copy of the decompositions"),
    Use(f"{_INDUCTOR}.decomposition", "select_decomp_table", "what Inductor replaces"),
    Use(
        f"{_INDUCTOR}.lowering",
        "make_fallback as_strided fallback_handler slice_ mul sigmoid to_device view permute",
        "to have an operator called as a function; the part of a tensor that an index chooses; the "
        "halves of a size that varies; seeds for a GPU; a linear layer's matrices",
    ),
    Use(f"{_INDUCTOR}.virtualized", "V", "the graph that is lowered"),
    Use(f"{_INDUCTOR}.inductor_prims", "seeds", "the seeds of random numbers"),
    Use("torch._dynamo.source", "ConstantSource", "where a symbol comes from that has no input"),
    Use(
        "torch.fx.experimental.sym_node",
        "SymNode._expr SymNode._optimized_summation",
        "the operands of arithmetic on sizes",
    ),
    Use(
        "torch.fx.experimental.symbolic_shapes",
        "ShapeEnv._replacements_version_counter",
        "whether sizes have been replaced by expressions since they were computed with",
    ),
    Use(
        "torch.fx.experimental.symbolic_shapes",
        "DimDynamic free_symbols ShapeEnv.create_unspecified_symbol "
        "ShapeEnv.constrain_symbol_range ShapeEnv.replacements",
        "numbers that differ between blocks that repeat",
    ),
    Use("torch.library", "Library._destroy", "operators for such blocks, while code is generated"),
    Use(
        f"{_INDUCTOR}.graph",
        "GraphLowering.constants GraphLowering.operations GraphLowering.graph_outputs "
        "GraphLowering.get_original_value_of_constant GraphLowering.allocated_constant_name "
        "GraphLowering.dynamo_flat_name_to_original_fqn GraphLowering.graph_input_names "
        "GraphLowering.example_inputs",
        "the program's constants, and who reads them",
    ),
    Use(
        f"{_INDUCTOR}.ir",
        "BaseView BaseView.data ConstantBuffer DynamicSelectStorageOffset MultiOutput MutableBox "
        "MutableBox.data RandomSeeds Subgraph InputBuffer TensorBox TensorBox.realize "
        "ExternKernel.require_exact_strides "
        "ExternKernel ExternKernel.op_overload ExternKernel.constant_args ExternKernel.kwargs "
        "ExternKernel.require_channels_last ExternKernel.require_stride_order "
        "ExternKernel.ordered_kwargs_for_cpp_kernel ExternKernel.fill_non_provided_args "
        "ExternKernel.get_kwargs_value InputsKernel.inputs FallbackKernel.unflatten_args "
        "IRNode.origins IRNode.maybe_get_dtype IRNode.codegen_reference IRNode.get_name "
        "IRNode.get_size IRNode.get_layout IRNode.get_read_writes",
        "calls of operators: their arguments, dtypes and layouts",
    ),
    Use(
        f"{_INDUCTOR}.ir",
        "ExternKernelAlloc ExternKernel.realize_input FixedLayout FlexibleLayout "
        "FlexibleLayout.stride_ordered TensorBox.create",
        "a call of slim's convolution",
    ),
    Use(
        f"{_INDUCTOR}.ir",
        "Buffer NonOwningLayout ReinterpretView as_storage_and_layout",
        "the place of its result in a concatenation",
    ),
    Use(
        f"{_INDUCTOR}.ir",
        "Pointwise Reduction is_cpu StorageBox.data Pointwise.inner_fn_opcount",
        "what a loop calls",
    ),
    Use(
        f"{_CODEGEN}.cpp",
        "CppKernelProxy.loop_nest CppKernelProxy.tile2d_kernel_cls",
        "loops that are tiled, and reductions inside of them",
    ),
    Use(f"{_INDUCTOR}.utils", "convert_shape_to_inductor", "the sizes of its result"),
    Use(
        f"{_INDUCTOR}.ir",
        "Pointwise.create ConcatKernel ConcatKernel.unwrap_storage ConcatKernel.realize_into "
        "StorageBox SliceView.create",
        "loops for batch norms and for images that become larger",
    ),
    Use(
        f"{_INDUCTOR}.virtualized",
        "ops ops.constant ops.index_expr ops.indirect_indexing ops.maximum ops.minimum ops.relu "
        "ops.to_dtype ops.truediv",
        "what such a loop computes",
    ),
    Use(
        f"{_CODEGEN}.cpp_wrapper_cpu",
        "CppWrapperCpu.codegen_device CppWrapperCpu.codegen_dtype CppWrapperCpu.codegen_layout "
        "CppWrapperCpu.codegen_memory_format CppWrapperCpu.val_to_arg_str_for_prim_type "
        "CppWrapperCpu.writelines CppWrapperCpu.prefix",
        "the arguments of a call of the dispatcher, as C++",
    ),
    Use(
        f"{_CODEGEN}.cpp",
        "DTYPE_TO_CPP OuterLoopFusedKernel OuterLoopFusedKernel.inner CppKernel.call_ranges "
        "CppKernel.sexpr CppKernel.parallel_reduction_prefix CppKernel.ranges "
        "CppKernelProxy.kernels CppVecKernel.tail_size CppVecKernel.tiling_factor "
        "CppVecKernel._get_vec_type CppVecKernel._get_mask_type CppVecKernel._get_num_vectors "
        "CppVecKernel._get_store_line CppVecKernel.broadcast CppTile2DKernel.transform_indexing "
        "CppKernel.itervars CppKernel.reduction_depth "
        "LoopNest.loops LoopNest.kernel LoopNest.max_parallel_depth LoopLevel.offset "
        "LoopLevel.size LoopLevel.steps LoopLevel.var LoopLevel.parallel LoopLevel.is_reduction "
        "ParallelDepth.parallel_depth ParallelDepth.start_depth cexpr_index "
        "KernelOpStats.op_counter KernelOpStats.mask_op_count "
        "KernelOpStats.non_contig_indexing_op_counter",
        "loops and vector code",
    ),
    Use(f"{_CODEGEN}.cpp_utils", "cexpr_index", "an expression as C++"),
    Use(
        f"{_CODEGEN}.common",
        "Kernel.rename_indexing CSEVariable.bounds CSEVariable.dtype "
        "Kernel.loads Kernel.compute Kernel.stores Kernel.args KernelArgs.output DeferredLine",
        "kernels and their variables",
    ),
    Use(
        f"{_INDUCTOR}.utils",
        "IndentedBuffer.indent IndentedBuffer.getvalue IndentedBuffer.splice IndentedBuffer._lines",
        "text that is generated",
    ),
    # For GPUs.
    Use(
        "torch._subclasses.fake_tensor",
        "FakeTensor FakeTensorMode",
        "tensors of a device that isn't there",
    ),
    Use(
        f"{_INDUCTOR}.runtime.triton_heuristics",
        "TritonCompileResult TritonCompileResult._get_arg_lists get_constexprs config_to_dict "
        "CachingAutotuner._create_compile_meta CachingAutotuner._create_compile_options",
        "a kernel's configuration, and the arguments of its launch",
    ),
    Use(f"{_INDUCTOR}.runtime.hints", "DeviceProperties.create", "to forget the device"),
    Use(f"{_INDUCTOR}.codecache", "PyCodeCache.load", "kernels from their source"),
    Use(
        f"{_INDUCTOR}.select_algorithm",
        "TritonTemplateCaller ExternKernelCaller TritonTemplate TritonTemplateKernel "
        "SymbolicGridFn autotune_select_algorithm",
        "the templates for products and convolutions",
    ),
    Use(f"{_INDUCTOR}.kernel.conv", "conv_layout", "the sizes and layout of a convolution"),
    Use(
        f"{_CODEGEN}.triton",
        "texpr TritonOverrides.constant",
        "an expression and a number as Triton",
    ),
    Use(f"{_INDUCTOR}.utils", "sympy_index_symbol", "an index that depends on data"),
    Use(f"{_CODEGEN}.common", "WorkspaceArg WorkspaceZeroMode", "a further parameter of a kernel"),
)
