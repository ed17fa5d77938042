"""The test of every model, the subcommand ``verify``: the compiled model against PyTorch.

Imports export, to build the module once more, and what is below it.
"""
