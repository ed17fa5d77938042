"""From a program to C++: the subcommand ``codegen``.

All code that reads or changes Inductor is here. Imports base, contract, program and packing.
"""
