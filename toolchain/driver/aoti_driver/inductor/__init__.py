"""From a program to C++: the subcommand ``codegen``.

Whatever reads or changes Inductor is here. Imports base, contract, program and packing.
"""
