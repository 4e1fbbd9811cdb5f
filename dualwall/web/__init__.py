"""The HTTP side of the server: who is let in, what is told of it, and in which shapes."""
