"""Benches: each prints the figures that the README and the issues speak of."""
