"""A model's typed C++ class and its Python module: the subcommand ``bindings``.

Imports base, contract, program and packing, and of those only what does without torch.
"""
