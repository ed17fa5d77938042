"""From Python source or a ``.pt2`` file to a program: the subcommands ``export`` and ``import``.

Imports base, contract, program and packing. Only this room runs a model's own code, and verify,
which builds the module again.
"""
