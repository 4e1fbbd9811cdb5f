"""Notes to chunks to stores."""
