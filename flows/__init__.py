"""When, and in what order: the plan, the ledger, the release flow, its schedule and the `margrave` command.

This room may import every other one and holds no mathematics of its own: it hands what one room made to the next.
A command that only reads a spec does not import Prefect.
"""
