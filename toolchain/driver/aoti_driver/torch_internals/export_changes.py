"""While a model is exported, and while a program is read from a file."""

from __future__ import annotations

from aoti_driver.torch_internals.entries import TIME_ONLY, Change, Option

_SHAPES = "torch.fx.experimental.symbolic_shapes:ShapeEnv"
_DESERIALIZER = "torch._export.serde.serialize:GraphModuleDeserializer"
_NO_CODE = "A program is read as data: what a file holds is never run."

CHANGES = (
    Change(
        f"{_SHAPES}.produce_guards_verbose",
        instead="leaves out guards that hold for all declared sizes",
        reason="torch.export refuses a model for a guard that it can't prove itself",
        test="export/test_guards.py::test_guards_that_always_hold",
    ),
    Change(
        f"{_SHAPES}._log_guard",
        instead="notes the line of the model that is traced",
        reason="torch's errors about sizes often name no line",
        test="export/test_export_errors.py::test_steps_of_a_recurrent_layer",
    ),
    Change(
        "torch._export.non_strict_utils:_NonStrictTorchFunctionHandler._override",
        instead="writes an assignment at an index that varies as one to what select returns",
        reason="torch.export asks for the index's value, though it takes such an index for reading",
        test="export/test_numbers.py::test_assignments_at_an_index_that_varies",
    ),
    Change(
        "torch.nn.modules.transformer:_detect_is_causal_mask",
        instead="doesn't ask for the values of a mask",
        reason="torch.export knows none, and refuses the layers",
        test="export/test_export.py::test_masks_of_transformer_layers",
    ),
    Change(
        "torch:SymFloat.__int__",
        instead="notes the module that calls int() with a quotient of sizes",
        reason="It fixes the size; the second attempt has another int(): see export/whole_sizes.py",
        test="export/test_whole_sizes.py::test_whole_numbers_of_quotients",
    ),
    Change(
        "torch:SymFloat.__trunc__",
        instead="gives a quotient of integers where it is exact",
        reason="torch proves little about the rounded float, and the contract has no such size",
        test="export/test_whole_sizes.py::test_whole_numbers_of_quotients",
    ),
    Change(
        "torch:SymFloat.__floor__",
        instead="gives a quotient of integers where it is exact",
        reason="torch proves little about the rounded float, and the contract has no such size",
        test="export/test_whole_sizes.py::test_whole_numbers_of_quotients",
    ),
    Change(
        "torch:SymFloat.__ceil__",
        instead="gives a quotient of integers where it is exact",
        reason="torch proves little about the rounded float, and the contract has no such size",
        test="export/test_whole_sizes.py::test_whole_numbers_of_quotients",
    ),
    Change(
        "torch._decomp:decomposition_table",
        kind="table",
        instead="an entry for std_mean.dim",
        reason="torch's takes two of its four arguments: it fails where a size varies",
        test="program/test_result_shapes.py::test_deviation_and_mean_of_any_number_of_rows",
    ),
    Change(
        "torch._decomp.decompositions:_rnn_helper",
        instead="gives the shapes of a recurrent layer's results if its number of steps varies",
        reason="It computes every step, which makes a constant of their number",
        test="export/test_recurrent.py::test_it_stays_whole",
    ),
    Change(
        "torch._C:_select_conv_backend",
        instead="chooses PyTorch's own code for bfloat16 and float16 in three dims",
        reason="It asks the host's CPU, and the layout of the result follows from its answer",
        test="program/test_convolutions.py::test_layouts_do_not_depend_on_the_host",
    ),
    Change(
        "torch._C:_get_custom_class_python_wrapper",
        instead="finds every class, where the libraries with classes are not loaded",
        reason="register_fake_class() asks whether there is a class of this name",
        test="program/test_objects.py::test_a_fake_class_without_its_class",
    ),
    Change(
        "torch.utils._pytree:SUPPORTED_SERIALIZED_TYPES",
        kind="table",
        instead="entries for the containers of a model's inputs and outputs, for good",
        reason="torch.export.save asks users to register a name for each: see export/pytrees.py",
        test="export/test_export.py::test_keywords_structures_and_mutation",
    ),
    Change(
        "torch.utils._pytree:SERIALIZED_TYPE_TO_PYTHON_TYPE",
        kind="table",
        instead="entries for the containers of a model's inputs and outputs, for good",
        reason="As in SUPPORTED_SERIALIZED_TYPES, which must agree",
        test="export/test_export.py::test_containers_of_other_libraries",
    ),
    Change(
        "torch:load",
        instead="reads tensors and plain values alone (weights_only)",
        reason=f"It unpickles sample inputs and constants of .pt2 files. {_NO_CODE}",
        test="program/test_no_code.py::test_sample_inputs",
    ),
    Change(
        "torch._C:_pickle_load_obj",
        instead="refuses",
        reason=f"It unpickles what weights_only doesn't. {_NO_CODE}",
        test="program/test_no_code.py::test_objects",
    ),
    Change(
        "torch._export.serde.serialize:canonicalize",
        instead="returns its argument",
        reason="torch makes another copy of a serialized program, and does not use it",
        test=TIME_ONLY,
    ),
    Change(
        "torch.fx.graph_module:GraphModule.print_readable",
        instead="returns an empty text",
        reason="torch logs a program that it serializes, and nobody sees the log",
        test=TIME_ONLY,
    ),
    Change(
        "torch.fx.graph_module:GraphModule.recompile",
        instead="lets code and forward() be made when they are asked for",
        reason="Each pass over a program makes its code anew, which nobody runs",
        test="export/test_spared_work.py::test_code_is_made_when_it_is_asked_for",
    ),
    *(
        Change(
            f"torch.fx.experimental.sym_node:SymNode.{operator}",
            instead="copies its result for the same sizes, also while code is generated",
            reason="Layers compute the same sizes, again and again",
            test="program/test_size_arithmetic.py::test_results_are_remembered",
        )
        for operator in (
            *("_add", "_sub", "_mul", "_sym_max", "_sym_min", "_and_", "_or_"),
            *("_eq", "_ne", "_gt", "_ge", "_lt", "_le"),
        )
    ),
    Change(
        "torch.utils._traceback:_extract_symbolized_tb",
        instead="gives the same objects for the same frames",
        reason="Each operator has the frames that called it, most of which are those of others",
        test=TIME_ONLY,
    ),
    Change(
        "torch.export.pt2_archive._package:pickle",
        instead="a module whose loads() refuses",
        reason=f"The reader of archives unpickles some members with it. {_NO_CODE}",
        test="program/test_no_code.py::test_objects",
    ),
    Change(
        "torch.export.pt2_archive._package:_load_aoti",
        instead="refuses",
        reason=f"It loads compiled libraries from archives. {_NO_CODE}",
        test="program/test_no_code.py::test_a_compiled_program_that_the_list_of_members_does_not_show",
    ),
    Change(
        "sympy:sympify",
        instead="takes arithmetic alone",
        reason=f"It evaluates the text of sizes with eval. {_NO_CODE}",
        test="program/test_no_code.py::test_texts_that_would_be_run",
    ),
    Change(
        "torch.utils._pytree:importlib",
        instead="a module whose import_module() knows the types of a defaultdict alone",
        reason=f"It imports the modules that the specs of inputs and outputs name. {_NO_CODE}",
        test="program/test_no_code.py::test_texts_that_would_be_run",
    ),
    Change(
        f"{_DESERIALIZER}.deserialize_operator",
        instead="takes operators alone",
        reason=f"It finds any function by its name. {_NO_CODE}",
        test="program/test_no_code.py::test_texts_that_would_be_run",
    ),
    Change(
        f"{_DESERIALIZER}.deserialize",
        instead="refuses names that are no identifiers or paths",
        reason=f"Names become source text that torch executes. {_NO_CODE}",
        test="program/test_no_code.py::test_texts_that_would_be_run",
    ),
)

OPTIONS = (
    Option(
        "torch.fx.experimental._config:backed_size_oblivious",
        "whether torch's operators ask if a size is 0 or 1: export.py tries without guards first",
    ),
)
