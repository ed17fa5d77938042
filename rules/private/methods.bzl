"""The names that methods may have in C++ and in Python."""

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_REST = _LOWER + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

# Keywords of Python, which can't be called as `model.NAME()`.
_KEYWORDS = [
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
]

# What the generated classes and the Python module have beside the methods.
_RESERVED = ["load", "manual_seed", "methods", "new_session", "session", "specs", "swap_weights", "with_options"]

# What a method of this name would hide in the stub of the Python module.
_USED_IN_STUB = [
    "bool",
    "bytearray",
    "bytes",
    "dict",
    "final",
    "float",
    "int",
    "list",
    "memoryview",
    "numpy",
    "os",
    "property",
    "str",
    "tuple",
]

def methods_error(methods):
    """Why these can't be the names of a model's methods.

    Args:
        methods: iterable of string.

    Returns:
        string, or None where they can
    """
    for name in methods:
        if not name or name[0] not in _LOWER or [c for c in name.elems() if c not in _REST] or "__" in name or name.endswith("_"):
            return 'methods: "{}" can\'t name a function in C++ and Python: use lower case letters, digits and single "_" between them'.format(name)
        if name in _KEYWORDS:
            return 'methods: "{}" is a keyword of Python; choose another name (what it runs is said by `method`)'.format(name)
        if name in _RESERVED:
            return 'methods: "{}" is a function that every generated class has; choose another name (what it runs is said by `method`)'.format(name)
        if name in _USED_IN_STUB:
            return 'methods: "{}" is a name that the stub of the Python module uses; choose another name (what it runs is said by `method`)'.format(name)
    return None
