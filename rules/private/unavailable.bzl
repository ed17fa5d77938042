"""Outputs that can't be made, or that the target does without."""

def unavailable(ctx, model, output, why):
    """Declares the action that refuses to make an output: an error if somebody wants it, and none if nobody does.

    Args:
        ctx: the context of aoti_library.
        model: what `requested_model` returned.
        output: File.
        why: the error's text.

    Returns:
        `output`
    """
    ctx.actions.run_shell(
        mnemonic = "AotiUnavailable",
        command = """printf '%s\\n' "$1" >&2; exit 1""",
        arguments = ["{}: {}".format(model.label, why)],
        outputs = [output],
        progress_message = "Refusing to make {}".format(output.short_path),
        toolchain = None,
    )
    return output
