"""A model's typed C++ class and its Python module: the subcommand ``bindings``.

Imports base, contract, program and packing, but only modules that do not need torch.
"""
