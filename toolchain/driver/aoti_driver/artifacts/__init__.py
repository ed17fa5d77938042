"""What leaves the build, one module for each subcommand that writes or reads it.

Archives, packed and replaced weights, provenance, the bill of materials, the report, and the choice
of the runtime. Imports base, contract, program and packing.
"""
