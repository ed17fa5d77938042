"""The driver: the program that the build's actions run, with a subcommand for each kind.

Its sub-packages are rooms, in layers: a room imports itself and rooms of lower layers only.
tests/unit/driver/test_layers.py has the table of them, and checks it.
"""
