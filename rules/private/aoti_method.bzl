"""aoti_method: one method of a model, and the targets that aoti_model makes of it."""

load(":aoti_library.bzl", "aoti_library")
load(":aoti_methods_library.bzl", "aoti_methods_library")
load(":aoti_test.bzl", "aoti_test")
load(":aoti_variant.bzl", "expand_variants", "has_alternatives", "split_alternatives")
load(":driver.bzl", "CODEGEN", "EXPORT", "PACKAGE")
load(":exec_properties.bzl", "properties_of_groups")
load(":names.bzl", "PROGRAM_SUFFIX")
load(":provenance.bzl", "INFO_SUFFIX", "aoti_info")
load(":torch_export.bzl", "torch_export")

def aoti_method(
        method = "",
        inputs = {},
        sample_inputs = "",
        dynamic_dims = {},
        strict = False,
        decompositions = [],
        options = {},
        variants = {},
        test_max_points = 16,
        rtol = "",
        atol = ""):
    """One method of a model, for `aoti_model(methods = {"encode": aoti_method(...)})`.

    Args:
        method: what it runs, as in `torch_export`: `encoder.step`. Default: the name that `methods` gives it.
        inputs: sample inputs by the method's argument names, such as `"int64[batch, seq] in 0..30521"`.
        sample_inputs: `package.module:callable` that makes the sample inputs, for what `inputs` can't say.
        dynamic_dims: ranges or relations of the dims that vary, such as `{"batch": "1..64"}`; `"auto"` has the export find one.
        strict: `torch.export`'s `strict`.
        decompositions: which operators are replaced by simpler ones; see `torch_export`.
        options: Inductor options; see `aoti_library`.
        variants: several programs of the method, `{"one": aoti_variant(...), ...}`; see docs/variants.md.
        test_max_points: the largest number of combinations of dim sizes that the method's test runs.
        rtol: relative tolerance of the method's test.
        atol: absolute tolerance of the method's test.

    Returns:
        A struct, for `aoti_model` alone.
    """
    return struct(
        method = method,
        inputs = inputs,
        sample_inputs = sample_inputs,
        dynamic_dims = dynamic_dims,
        strict = strict,
        decompositions = decompositions,
        options = options,
        variants = variants,
        test_max_points = test_max_points,
        rtol = rtol,
        atol = atol,
    )

def methods_arguments_error(methods, arguments):
    """Why aoti_model can't be called with these methods; None where it can.

    Args:
        methods: dict, what the user gave.
        arguments: dict of the arguments of aoti_model that each method has for itself.

    Returns:
        string or None
    """
    for key, method in methods.items():
        if type(method) != "struct" or not hasattr(method, "test_max_points"):
            return 'methods["{}"] is a {}, expected aoti_method(inputs = ...)'.format(key, type(method))
    for key, value in arguments.items():
        if value:
            return "{} together with methods: each method has its own, methods = {{\"{}\": aoti_method({} = ...)}}".format(
                key,
                methods.keys()[0],
                key,
            )
    return None

def _programs(name, methods, single):
    """The programs of all methods: list of struct(key, own, method, inputs, dynamic_dims, options).

    key: `decode`, or `decode.one` for a variant. own: the name of the program's library.
    """
    programs = []
    for key, method in methods.items():
        found = expand_variants(method.inputs, method.dynamic_dims, method.variants)
        if found.error:
            place = "" if single else 'methods["{}"]: '.format(key)
            fail("aoti_model {}: {}{}".format(name, place, found.error))
        expanded = found.programs
        prefix = name if single else "{}_{}".format(name, key)
        for variant, one in expanded.items():
            programs.append(struct(
                key = "{}.{}".format(key, variant),
                own = "{}_{}".format(prefix, variant),
                method = key,
                inputs = one.inputs,
                dynamic_dims = one.dynamic_dims,
                options = method.options | one.options,
            ))
        if not expanded:
            programs.append(struct(
                key = key,
                own = prefix,
                method = key,
                inputs = method.inputs,
                dynamic_dims = method.dynamic_dims,
                options = method.options,
            ))
    return programs

def _spaces(methods, programs):
    """What calls of methods with variants may pass, and what each variant takes, as JSON."""
    spaces = {}
    for program in programs:
        if program.key == program.method:
            continue
        method = methods[program.method]
        for key, one in [(program.method, method), (program.key, program)]:
            spaces[key] = {
                "dynamic_dims": one.dynamic_dims,
                "inputs": {name: split_alternatives(text) for name, text in one.inputs.items()},
            }
    return json.encode(spaces) if spaces else ""

def has_variants(inputs, variants):
    """Whether a model has variants: declared ones, or inputs with alternatives.

    Args:
        inputs: dict of string.
        variants: dict.

    Returns:
        bool
    """
    return bool(variants) or has_alternatives(inputs)

def model_of_methods(name, methods, source, library, model, tests, exec_properties, visibility, hidden, tags, single = False):
    """The targets of a model with methods.

    Args:
        name: the model's name.
        methods: dict of what aoti_method returned.
        source: dict, the attributes of `torch_export` that all methods have in common.
        library: dict, the same for `aoti_library`.
        model: dict, the same for `aoti_methods_library`.
        tests: what `model_tests` returned, the same for `aoti_test`.
        exec_properties: as aoti_model has them.
        visibility: of the model.
        hidden: dict, what the targets have that wildcards must not build.
        tags: of the model.
        single: whether the only method is what a call of the model calls.
    """
    private = ["//visibility:private"]
    libraries = {}
    names = []
    programs = _programs(name, methods, single)
    for program in programs:
        method = methods[program.method]
        own = program.own
        libraries[program.key] = ":" + own
        torch_export(
            name = own + PROGRAM_SUFFIX,
            method = method.method or ("" if single else program.method),
            inputs = program.inputs,
            sample_inputs = method.sample_inputs,
            dynamic_dims = program.dynamic_dims,
            strict = method.strict,
            decompositions = method.decompositions,
            exec_properties = properties_of_groups(exec_properties, [EXPORT, PACKAGE]),
            visibility = private,
            **(hidden | source)
        )
        aoti_library(
            name = own,
            program = ":" + own + PROGRAM_SUFFIX,
            options = program.options,
            # The module is that of the whole model.
            python = False,
            exec_properties = properties_of_groups(exec_properties, [CODEGEN, PACKAGE]),
            visibility = private,
            **(hidden | library)
        )
        aoti_info(name = own + INFO_SUFFIX, library = ":" + own, visibility = private, **hidden)
        for suffix, test in tests.items():
            names.append(own + suffix)
            aoti_test(
                name = own + suffix,
                library = ":" + own,
                max_points = method.test_max_points,
                rtol = method.rtol,
                atol = method.atol,
                **test
            )
    aoti_methods_library(
        name = name,
        methods = libraries,
        single = single,
        spaces = _spaces(methods, programs),
        exec_properties = properties_of_groups(exec_properties, [PACKAGE]),
        visibility = visibility,
        tags = tags,
        **model
    )
    native.test_suite(name = name + "_test", tests = names, tags = ["manual"], visibility = private)
