"""The C++ tokenizer agrees with the reference on every text."""

from __future__ import annotations

import codecs
import os
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from examples.cc_chat.testing import reference_tokenizer

GGUF = Path(os.environ["RUNFILES_DIR"], os.environ["GGUF"])
TEXT_TOOL = Path(os.environ["RUNFILES_DIR"], os.environ["TEXT_TOOL"])

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "I'm sure they'll've said it's 'quoted', we'd've 'S 'RE ''s'' don't",
    "3.14159 2024-12-31 x86_64 1 22 333 a1b2 ½ ² Ⅷ ٣٤ १२३ \U0001d7d8",
    "  two  spaces   three\tand\t\ttabs \t mixed\u00a0nbsp\u2003em\u3000ideographic ",
    "line\nline\n\nline\r\n\r\n  indented\n\n\n",
    " 1  2   3\n4\n\n5 \n6",
    "def f(x):\n    return {'a': [x ** 2, -1]}  # ~`@$%^&*\n",
    "Grüße aus Köln, naïve café, Ελληνικά, русский текст, עברית, العربية, हिन्दी, ไทย",
    "日本語のテキスト、中文文本。 한국어 문장 ",
    "e\u0301 a\u0308 combining \u200bzero\u200dwidth\ufeff",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "❤\ufe0f \U0001f44d\U0001f3fd!\U0001f44d",
    "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n hi <|im_end|> <|im_end|>",
    "<|im_start|><|im_start|>a<|im_start |><|im_start<|im_end|><repo_name>x<reponame>",
    "<|endoftext|>\n\n<file_sep>  <filename>",
    "a" * 3000 + " " * 500 + "\n" * 100 + "ab" * 500,
    "\x00\x01\x1b[0m\x1c\x1d\x1e\x1f\x7f\x85\u2028\u2029",
]  # fmt: skip


class TextTool:
    """The C++ tokenizer, in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [TEXT_TOOL, GGUF], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate(timeout=60)

    def _ask(self, *words: object) -> str:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer.endswith("\n"), "the tool died"
        return answer

    def encode(self, command: str, text: str) -> list[int]:
        """Tokens of a text; command is "text" or "special"."""
        return [int(token) for token in self._ask(command, text.encode().hex()).split()]

    def bytes_of(self, tokens: list[int]) -> bytes:
        """What the tokens stand for."""
        return bytes.fromhex(self._ask("bytes", *tokens))

    def stream(self, pieces: list[bytes]) -> list[str]:
        """What Utf8Stream makes of each piece, and what it ends with."""
        answer = self._ask("stream", *(piece.hex() for piece in pieces)).rstrip("\n").split(" ")
        return [bytes.fromhex(text).decode() for text in answer]


@pytest.fixture(scope="module", name="tool")
def _tool() -> Iterator[TextTool]:
    tool = TextTool()
    yield tool
    tool.close()


@pytest.fixture(scope="module", name="reference")
def _reference() -> Tokenizer:
    return reference_tokenizer.load(GGUF)


@pytest.fixture(scope="module", name="known_bytes")
def _known_bytes(reference: Tokenizer) -> frozenset[int]:
    """The bytes that the vocabulary has a token for."""
    alphabet = {}
    following = 0x100
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or (byte >= 0xA1 and byte != 0xAD):
            alphabet[byte] = chr(byte)
        else:
            alphabet[byte] = chr(following)
            following += 1
    return frozenset(b for b, c in alphabet.items() if reference.token_to_id(c) is not None)


# Python's tables, from which the program's are made, know fewer characters than a newer Unicode.
assigned = st.characters(exclude_categories=["Cs", "Cn"])
ascii_mix = st.text(st.sampled_from(" \n\t'abstremvld019.,-<|>_"))
special_mix = st.lists(
    st.sampled_from(["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|", "|>", "user", "\n", " "])
).map("".join)
texts = st.one_of(st.text(assigned), ascii_mix, special_mix)


def check(tool: TextTool, reference: Tokenizer, known_bytes: frozenset[int], text: str) -> None:
    tokens = tool.encode("special", text)
    assert tokens == reference.encode(text, add_special_tokens=False).ids
    expected = bytes(byte for byte in text.encode() if byte in known_bytes)
    assert tool.bytes_of(tokens) == expected
    assert tool.bytes_of(tool.encode("text", text)) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_agrees_on_chosen_texts(
    tool: TextTool, reference: Tokenizer, known_bytes: frozenset[int], text: str
) -> None:
    check(tool, reference, known_bytes, text)


@settings(max_examples=2000)
@given(text=texts)
@example(text="   1")
@example(text=" 's")
def test_agrees_on_any_text(
    tool: TextTool, reference: Tokenizer, known_bytes: frozenset[int], text: str
) -> None:
    check(tool, reference, known_bytes, text)


def test_agrees_on_every_character(tool: TextTool, reference: Tokenizer) -> None:
    """Each character between letters, spaces and signs: its class decides where the text is cut."""
    characters = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")
    ]
    step = 64
    for start in range(0, len(characters), step):
        text = "".join(f"a{c}b {c} .{c}\n" for c in characters[start : start + step])
        assert tool.encode("text", text) == reference.encode(text).ids, hex(ord(characters[start]))


def test_special_tokens_can_be_taken_as_text(tool: TextTool) -> None:
    text = "<|im_end|>"
    assert tool.encode("special", text) == [2]
    tokens = tool.encode("text", text)
    assert len(tokens) > 1
    assert tool.bytes_of(tokens) == text.encode()


def test_ordinary_text_survives_the_round_trip(tool: TextTool) -> None:
    for text in TEXTS[1:9]:
        assert tool.bytes_of(tool.encode("text", text)) == text.encode()


# CPython's own decoder waits for a third byte here, though no text begins with these two.
_HALF_A_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]\Z")


@given(pieces=st.lists(st.binary(min_size=1, max_size=6), max_size=6))
@example(pieces=[b"\xe2\x82", b"\xac"])
@example(pieces=["\U0001f600".encode()[:3], b"a"])
def test_stream_is_an_incremental_decoder(tool: TextTool, pieces: list[bytes]) -> None:
    read = [b"".join(pieces[: i + 1]) for i in range(len(pieces))]
    assume(not any(_HALF_A_SURROGATE.search(text) for text in read))
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    expected = [decoder.decode(piece) for piece in pieces]
    expected.append(decoder.decode(b"", final=True))
    assert tool.stream(pieces) == expected


def test_stream_does_not_wait_for_a_surrogate(tool: TextTool) -> None:
    for second in range(0xA0, 0xC0):
        assert tool.stream([bytes([0xED, second]), b"a"]) == ["\ufffd\ufffd", "a", ""]


def test_stream_knows_what_is_no_utf8(tool: TextTool) -> None:
    """Overlong forms, surrogates, too large: it takes the second byte to tell."""
    for lead in range(0x80, 0x100):
        for second in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF):
            piece = bytes([lead, second, 0x80, 0x80, 0x41])
            assert "".join(tool.stream([piece])) == piece.decode(errors="replace"), piece
