"""Compiled loops. They hold the arithmetic that is done for every cell; what it means is said where they are used.

Arithmetic is strict: no reordering, no fused steps, so the same measurements give the same bytes on every machine,
whatever the number of workers. Compiled code is kept beside these files, or in the user's cache where those cannot be
written; where neither can, every process compiles anew.
"""
