"""The C++ source that only has the digest of a program's graph.

Every edit of the model changes the digest, and few change anything else in the bindings: those are
not compiled anew.
"""

from __future__ import annotations

from aoti_driver.bindings.text import comment_text, cpp_string, substitute

_DECLARATION = 'extern "C" __attribute__((visibility("hidden"))) const char {symbol}[];\n'
_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

extern "C" {
__attribute__((visibility("hidden"))) extern const char @SYMBOL@[];
const char @SYMBOL@[] = @DIGEST@;
}
"""


def generate(program_id: str, *, label: str, digest: str) -> str:
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(label),
            "SYMBOL": symbol(program_id),
            "DIGEST": cpp_string(digest),
        },
    )


def declaration(program_id: str) -> str:
    """For the implementation."""
    return _DECLARATION.format(symbol=symbol(program_id))


def symbol(program_id: str) -> str:
    """The array of characters that the implementation refers to."""
    return f"{program_id}_digest"
