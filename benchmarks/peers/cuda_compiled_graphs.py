"""torch.compile on a GPU in the mode that records CUDA graphs."""

from __future__ import annotations

from benchmarks.peers.cuda_compiled import Compiled
from benchmarks.peers.protocol import main


class CompiledGraphs(Compiled):
    mode = "reduce-overhead"


if __name__ == "__main__":
    main(CompiledGraphs)
