"""The ledger: the durable account of what was spent, shared by all releases of an office.

A reader's way through the folder:

1. `chain`: entries, each with the hash of the one before. The chain is the ledger; everything else is derived from it.
2. `books`: what a chain says: policies, runs, keys, approvals; `rules`, `spending` and `founding`: what may be entered,
   and what an entry changes. The same rules decide when something is entered and when a chain is verified.
3. `keys`: signatures of named persons, and the office's own.
4. `store`, `sqlite_store`, `postgres_store`: where entries are kept, one writer at a time.
5. `ledger`: the door. `backup` and `verifying`: what is kept for ten years.
"""
