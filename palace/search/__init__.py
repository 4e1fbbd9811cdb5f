"""A scoped question to hits with a receipt."""
