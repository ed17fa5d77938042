"""Programs in the source tree: the subcommands ``freeze``, ``thaw`` and ``frozen_diff``.

Imports base, contract, program and packing.
"""
