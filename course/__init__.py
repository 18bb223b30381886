"""A kit for teaching by tests: checkpoints, scaffolds, first reds, faults, verdicts."""

__version__ = "0.1.0"
