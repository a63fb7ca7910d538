"""The words of a spec, section by section: what each may hold, read from text and written back.

`spec.py`, one floor up, puts the sections together; what no section can know alone is in `checks/`.
"""
