"""The parts of a plan: shapes of queries, what an edition may spend, shares, promises, and the guarantee in words."""
