"""How Obsidian reads a note: bytes in, a parsed note out. Pure."""
