"""After the noise: sees measurements, never records.

Here noisy counts become tables that agree with each other, are non-negative and whole, and say by how much each
cell may be off. Whatever this room can reach is public, which is why it may import `release_specs` and never
`tabulation` or `mechanisms`.
"""
