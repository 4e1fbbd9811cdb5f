"""The ground: words, names, walls, settings, reading Obsidian, stores, embedding, search."""
