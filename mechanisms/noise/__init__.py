"""Exact draws: integers decide every comparison, and no float is on the way from random bits to a draw."""
