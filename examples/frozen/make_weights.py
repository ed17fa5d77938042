"""Stands for a training run: `make_weights.py OUT SCALE` writes a safetensors file."""

import array
import json
import math
import sys
from pathlib import Path

SHAPES = {
    "hidden.weight": [16, 8],
    "hidden.bias": [16],
    "score.weight": [1, 16],
    "score.bias": [1],
}


def main() -> None:
    out, scale = Path(sys.argv[1]), float(sys.argv[2])
    header: dict[str, object] = {}
    values = array.array("f")
    for name, shape in SHAPES.items():
        begin = 4 * len(values)
        values.extend(scale * ((7 * i) % 11 - 5) / 16 for i in range(math.prod(shape)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, 4 * len(values)]}
    text = json.dumps(header).encode()
    out.write_bytes(len(text).to_bytes(8, "little") + text + values.tobytes())


if __name__ == "__main__":
    main()
