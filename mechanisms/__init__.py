"""The noise: how privacy is bought, in numbers only, with no tables and no files.

A reviewer's way through the room:

1. `sensitivity`: how far one protected unit can move a query; every line of the law, and refusals for the rest.
2. the mechanisms, one file each, guarantee and price on the same screen: `discrete_laplace`, `discrete_gaussian`
   (with `noisy_counts`), `randomised_response`, `exponential_mechanism`, `permute_and_flip`, `noisy_max`, `quantile`
   (with `scores`), `bounded_sum`; prices that are not rational in `prices`.
3. `randomness` and the folder `noise`: where bits come from, and how they become exact draws.
4. `charge` and `catalogue`: what the ledger remembers of a measurement.
5. `accountant` and the folder `accounting`: what the charges of a release cost together.
6. `choose`: which family of noise gives less error for a budget.

The room imports no other room: numpy, cryptography and the standard library are enough.
"""
