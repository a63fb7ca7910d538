"""What the public receives: the published tables, their metadata and the report on their error.

Words, formats and layout change for reasons of their own, so they live apart from the numbers. The room may import
`estimation` and `release_specs`; it never sees a record and never draws noise.
"""
