"""aoti_variant: one of several programs of a method, and what the inputs of a method leave open."""

load(":methods.bzl", "methods_error")

# A function with more programs is probably a mistake: each is exported, compiled and tested.
_MOST_VARIANTS = 64

_DIGITS = "0123456789"

def aoti_variant(inputs = {}, dynamic_dims = {}, options = {}):
    """One of several programs of a model or of a method, for `aoti_model(variants = {"one": aoti_variant(...)})`.

    What it does not say is as the model or the method has it.

    Args:
        inputs: what it takes for some of the inputs, such as `{"mask": "None", "mode": "'max'"}`.
        dynamic_dims: the sizes that it takes, such as `{"batch": "1"}` or `{"batch": "8..512 step 8"}`.
        options: more Inductor options for it; see `aoti_library`.

    Returns:
        A struct, for `aoti_model` and `aoti_method` alone.
    """
    return struct(variant_inputs = inputs, dynamic_dims = dynamic_dims, options = options)

def split_alternatives(text):
    """The alternatives of an input: `"float32|bfloat16[n] | None"` has three.

    Args:
        text: string, as the BUILD file has it.

    Returns:
        list of string
    """
    parts = []
    part = ""
    quote = ""
    depth = 0
    for char in text.elems():
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        if char == "|" and not quote and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    parts.append(part.strip())
    return _with_shapes(parts)

def _with_shapes(parts):
    """Gives a dtype without a shape that of the next one: `float32|bfloat16[n]`."""
    result = []
    shape = ""
    for part in reversed(parts):
        if _is_dtype(part) and shape:
            part += shape
        elif part == "bool":
            result += ["False", "True"]
            continue
        else:
            shape = part[part.index("["):] if "[" in part and not _is_literal(part) else ""
        result.append(part)
    return [part for part in reversed(result)]

def _is_dtype(part):
    """Whether it is a dtype alone; `int` and `float` are numbers."""
    if not part or [c for c in part.elems() if not (c.isalnum() or c == "_")]:
        return False
    return part == "bool" or (part[:1].isalpha() and part[-1:].isdigit()) or part.startswith("float8")

def _is_literal(part):
    return part in ["None", "True", "False"] or part[:1] in _DIGITS + "'\"-(+."

def expand_variants(inputs, dynamic_dims, variants):
    """The programs of a method: its variants, one for each alternative that they leave open.

    Args:
        inputs: dict of string, the method's.
        dynamic_dims: dict of string, the method's.
        variants: dict of what aoti_variant returned.

    Returns:
        A struct: `error` (string or None) and `programs` (dict of struct(inputs, dynamic_dims, options) by the
        variant's name; empty for a method without variants).
    """
    if not variants and not has_alternatives(inputs):
        return struct(error = None, programs = {})
    result = {}
    for name, variant in (variants or {"": aoti_variant()}).items():
        error = _variant_error(name, variant, inputs, dynamic_dims)
        if error:
            return struct(error = error, programs = {})
        dims = dict(dynamic_dims)
        for dim, text in variant.dynamic_dims.items():
            # A size alone is a range with one value.
            dims[dim] = "{0}..{0}".format(text.strip()) if text.strip().isdigit() else text
        for suffix, one in _choices(inputs, variant.variant_inputs):
            key = _join([name, suffix])
            if key in result:
                return struct(error = 'variants: two are called "{}"; rename "{}"'.format(key, name), programs = {})
            sizes = dims | {dim: "0..0" for dim in _absent(one, inputs, dims)}
            result[key] = struct(inputs = one, dynamic_dims = _used(one, sizes), options = variant.options)
            if len(result) > _MOST_VARIANTS:
                error = "variants: more than {} programs. Say in `variants` which combinations are needed".format(_MOST_VARIANTS)
                return struct(error = error, programs = {})
    error = methods_error(result)
    return struct(error = "variants: " + error.removeprefix("methods: ") if error else None, programs = result)

def has_alternatives(inputs):
    """Whether calls differ in more than sizes and numbers.

    Args:
        inputs: dict of string.

    Returns:
        bool
    """
    return bool(_structures(inputs) or [text for text in inputs.values() if len(split_alternatives(text)) > 1])

def _structures(inputs):
    """Inputs that are None or have parts: `"cache": "None"` beside `"cache[0]": "float32[n]"`; dict of list of the parts."""
    parts = {
        root: [key for key in inputs if key.startswith(root + "[") or key.startswith(root + ".")]
        for root, text in inputs.items()
        if text.strip() == "None"
    }
    return {root: found for root, found in parts.items() if found}

def _choices(inputs, variant_inputs):
    """What a variant leaves open: list of (suffix of the name, dict of the inputs)."""
    shapes = [("", [])]
    for root, parts in _structures(inputs).items():
        named = [key for key in parts if key in variant_inputs]
        choices = []
        if not named:
            choices.append(("" if root in variant_inputs else _name_part(root) + "_none", parts))
        if root not in variant_inputs:
            choices.append(("" if named else _name_part(root), [root]))
        shapes = [(_join([before, suffix]), gone + more) for before, gone in shapes for suffix, more in choices]
    return [
        (_join([before, suffix]), one)
        for before, gone in shapes
        for suffix, one in _combinations({
            key: split_alternatives(variant_inputs.get(key, text))
            for key, text in inputs.items()
            if key not in gone
        })
    ]

def _join(parts):
    return "_".join([part for part in parts if part])

def _used(inputs, dims):
    """The dims that the inputs mention, and those that these mention."""
    texts = [text for text in inputs.values() if not _is_literal(text)]
    used = {}
    for _ in range(len(dims) + 1):
        words = {word: None for text in texts + [dims[dim] for dim in used] for word in _words(text)}
        used = {dim: None for dim in dims if dim in words}
    return {dim: text for dim, text in dims.items() if dim in used}

def _absent(one, inputs, dims):
    """The dims that have a value only where an input that is None in `one` is not None."""
    given = _given(one.values(), dims)
    texts = [part for text in inputs.values() for part in split_alternatives(text)]
    return [dim for dim in _given(texts, dims) if dim not in given]

def _given(texts, dims):
    """The free dims that have a value by a size without another dim, and without a division."""
    found = {}
    for text in texts:
        shape = "" if _is_literal(text) else text.partition("[")[2].partition("]")[0]
        for size in shape.split(","):
            names = {word: None for word in _words(size) if word in dims}.keys()
            if len(names) == 1 and "//" not in size:
                # A derived dim's text has one other dim.
                others = [word for word in _words(dims[names[0]]) if word in dims]
                found[(others or names)[0]] = None
    return found.keys()

def _words(text):
    return "".join([c if c.isalnum() or c == "_" else " " for c in text.elems()]).split(" ")

def _variant_error(name, variant, inputs, dynamic_dims):
    where = 'variants["{}"]'.format(name)
    if type(variant) != "struct" or not hasattr(variant, "variant_inputs"):
        return "{} is a {}, expected aoti_variant(inputs = ...)".format(where, type(variant))
    for attribute, given, known in [
        ("inputs", variant.variant_inputs, inputs),
        ("dynamic_dims", variant.dynamic_dims, dynamic_dims),
    ]:
        for key in given:
            if key not in known:
                return '{0}: {1}["{2}"]: the model has no such entry in `{1}`; it has {3}'.format(
                    where,
                    attribute,
                    key,
                    ", ".join(known) or "none",
                )
    return None

def _combinations(chosen):
    """One alternative of each input: list of (suffix of the name, dict)."""
    result = [("", {})]
    for key, found in chosen.items():
        suffixes = _suffixes(key, found)
        result = [
            (_join([before, suffix]), one | {key: alternative})
            for before, one in result
            for suffix, alternative in zip(suffixes, found)
        ]
    return result

def _suffixes(key, found):
    """What tells the alternatives of an input apart, as parts of a name."""
    if len(found) == 1:
        return [""]
    literals = [part for part in found if _is_literal(part)]
    tensors = [part for part in found if part not in literals]
    dtypes = [part.partition("[")[0].partition(" ")[0] for part in tensors]
    result = []
    for part in found:
        if part in literals:
            text = _name_part(part)
        elif len(tensors) == 1:
            text = ""
        elif len(depset(dtypes).to_list()) == len(tensors):
            text = _name_part(part.partition("[")[0].partition(" ")[0])
        else:
            text = "{}d".format(_rank(part))
        result.append(_join([_name_part(key), text]))
    if len(depset(result).to_list()) < len(result):
        result = ["{}_{}".format(_name_part(key), i) for i in range(len(found))]
    return result

def _rank(part):
    shape = part.partition("[")[2].rpartition("]")[0].strip()
    return len(shape.split(",")) if shape else 0

def _name_part(text):
    """Lower case letters, digits and single `_`."""
    if text.startswith("-"):
        text = "minus_" + text
    text = "".join([c if c.isalnum() else "_" for c in text.lower().elems()])
    return _join(text.split("_"))
