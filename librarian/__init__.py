"""Place notes in rooms and build the palace of hardlinks."""
