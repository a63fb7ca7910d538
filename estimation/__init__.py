"""After the noise: sees measurements, never records.

Here noisy counts become tables that agree with each other, are non-negative and whole, and say by how much each
cell may be off. Whatever this room can reach is public, which is why it may import `release_specs` and never
`tabulation` or `mechanisms`.

Reading order: `release` is the door, `docs/estimation.md` the story. `problem` with `forest`, `design`, `atoms`,
`histogram`, `arranging` turns a spec into numbers; `coordinates`, `spaces`, `stages`, `least_squares`, `variances` are
the unbiased estimates; `passes`, `settling`, `newton`, `limits`, `rules`, `estimate` the whole numbers; `error`,
`redraw`, `intervals`, `derived`, `tables` say how far off they may be; `forecast` and `sizes` what is known beforehand;
`verify` checks finished tables by itself.
"""
