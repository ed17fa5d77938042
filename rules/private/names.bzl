"""Names derived from labels: what users see in messages, and identifiers in generated code."""

# The suffix of the target that `aoti_model` makes for the program.
PROGRAM_SUFFIX = ".program"

# The same for a program that is frozen in the source tree.
FROZEN_SUFFIX = ".frozen_program"

# The same for the Python module of an operator.
SOURCE_SUFFIX = ".source"

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_IDENTIFIER = _LOWER + _UPPER + "0123456789_"

def model_name(label):
    """The model's short name: the target's name without `.program` or `.frozen_program`."""
    return label.name.removesuffix(PROGRAM_SUFFIX).removesuffix(FROZEN_SUFFIX)

def _repository(label):
    """What a label of another repository begins with: two `@` make it valid in any module, and on the command line."""
    return "@@" + label.repo_name if label.repo_name else ""

def user_label(label):
    """The label as a user would type it."""
    return "{}//{}:{}".format(_repository(label), label.package, label.name)

def file_stem(label):
    """What the names of a target's files begin with: no two targets of a model have one."""
    return label.name.removesuffix(PROGRAM_SUFFIX).removesuffix(SOURCE_SUFFIX)

def model_label(label):
    """The model's label as a user would type it, such as `//models:encoder`."""
    return "{}//{}:{}".format(_repository(label), label.package, model_name(label))

def identifier(text):
    """`text` with every character that C++ does not allow in a name replaced by `_`."""
    chars = [c if c in _IDENTIFIER else "_" for c in text.elems()]
    return ("_" if text[:1].isdigit() else "") + "".join(chars)

def program_id(label):
    """A C identifier that no other label has: readable, and told apart by a hash of the label."""
    text = model_label(label)
    digest = hash(text)
    return "m_{}_{}".format(identifier(text.lstrip("/@:").replace(":", "_")), "n%d" % -digest if digest < 0 else "p%d" % digest)

def cc_class_name(name):
    """`llm_aoti` -> `LlmAoti`."""
    words = identifier(name).split("_")
    text = "".join([w[:1].upper() + w[1:] for w in words])
    return ("_" if text[:1].isdigit() else "") + text

def cc_namespace(label):
    """The package as a C++ namespace: `a/b` -> `a::b`; the root package is `aoti_models`."""
    if not label.package:
        return "aoti_models"
    return "::".join([identifier(part) for part in label.package.split("/")])

def runfiles_path(file):
    """The file's path below the runfiles root."""
    return file.short_path[len("../"):] if file.short_path.startswith("../") else "_main/" + file.short_path
