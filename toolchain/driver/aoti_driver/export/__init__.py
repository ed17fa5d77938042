"""From Python source or a ``.pt2`` file to a program: the subcommands ``export`` and ``import``.

Imports base, contract, program and packing. This room alone runs a model's own code, together with
verify, which builds the module once more.
"""
