"""A small agent harness: a loop, a tool table, a gate, a plan and subtasks."""
