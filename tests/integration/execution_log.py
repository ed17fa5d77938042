"""What a build ran: read from the log that Bazel writes with --execution_log_json_file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path


def executed(log: Path) -> Counter[str]:
    """How often each kind of action ran, by its mnemonic; what came from a cache did not run."""
    text = log.read_text(encoding="utf-8")
    decoder = json.JSONDecoder()
    found: Counter[str] = Counter()
    at = 0
    while at < len(text):
        spawn, at = decoder.raw_decode(text, at)
        if not spawn.get("cacheHit"):
            found[spawn["mnemonic"]] += 1
        while at < len(text) and text[at].isspace():
            at += 1
    return found
