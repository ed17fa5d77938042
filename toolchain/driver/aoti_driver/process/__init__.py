"""The processes that steps run in: the command line, the worker, and the barrier around a step.

This is the top room: it names the modules of the subcommands, and imports them when they are run.
Of the other rooms it imports base.
"""
