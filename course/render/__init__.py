"""Results as text for people and programs: pure functions, one escape function a sink."""
