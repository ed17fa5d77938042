"""Writes a safetensors file of zeros: `make_weights.py OUT NAME:ROWS[xCOLUMNS]...`"""

import json
import math
import sys
from pathlib import Path


def main() -> None:
    out, *tensors = sys.argv[1:]
    header: dict[str, object] = {}
    end = 0
    for tensor in tensors:
        name, _, sizes = tensor.partition(":")
        shape = [int(size) for size in sizes.split("x")]
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    Path(out).write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))


if __name__ == "__main__":
    main()
