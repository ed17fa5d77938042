"""What a lint_test runs: //tools/lint, whose source is compiled for that library alone."""

from __future__ import annotations

from lint.lint import main

if __name__ == "__main__":
    main()
