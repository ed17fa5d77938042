"""The driver: the program that the build's actions run, with a subcommand for each kind.

Its sub-packages are rooms, in layers: a room imports only itself and rooms of lower layers. The
table of the layers is in tests/unit/driver/test_layers.py, which checks it.
"""
