"""The artifacts of the build, with one module for each subcommand that writes or reads them.

They are archives, packed and replaced weights, provenance, the bill of materials, the report, and
the choice of the runtime. Imports base, contract, program and packing.
"""
