"""Before the noise: the only room that sees microdata.

Here records are read, checked against the spec's domain, clipped, bounded per privacy unit and counted into one
integer array per margin. Nothing in this room draws noise, and what leaves it goes to a mechanism and nowhere else.
It may import `release_specs`, and never `mechanisms` or `estimation`.
"""
