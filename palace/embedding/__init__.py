"""Texts to vectors, dense and sparse, behind ports."""
