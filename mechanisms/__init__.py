"""The noise: how privacy is bought, in numbers only, with no tables and no files.

Here are the source of randomness, the exact samplers, the mechanisms with their guarantees, the sensitivity of a
count to one privacy unit, and the accountant that composes charges. Every guarantee stands beside the code that
keeps it. The room imports no other room: numpy, cryptography and the standard library are enough.
"""
