"""Which files a Python target consists of."""

def python_sources(info):
    """What a Python target and its deps have as source, also where programs get bytecode in its place.

    Args:
        info: PyInfo. Only that of current rules_python separates the two (`precompile_source_retention = "omit_source"`).

    Returns:
        list of depset of File
    """
    original = getattr(info, "transitive_original_sources", None)
    return [info.transitive_sources] + ([original] if original else [])
