"""Makes releases: see docs/releasing.md."""
