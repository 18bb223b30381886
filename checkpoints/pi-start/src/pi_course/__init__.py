"""A small coding agent, built one chapter at a time."""
