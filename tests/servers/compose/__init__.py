"""Real servers for tests and benches, started on this machine."""
