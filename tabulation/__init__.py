"""Before the noise: the only room that sees microdata.

Here records are read, checked against the spec's domain, clipped, bounded per privacy unit and counted into one
integer array per margin. Nothing in this room draws noise, and what leaves it goes to a mechanism and nowhere else.
It may import `release_specs`, and never `mechanisms` or `estimation`.

Reading order: `tabulate` is the door. `sources` and `lines` open files, `schema` checks their structure, `reading` and
`numbers` turn cells into places, `records`, `bound` and `groups` turn cells into bounded records, `clusters`, `count`
and `counts` turn those into exact counts. `engines` run the expressions; `boundary` and `private` keep what is said and
spilled from getting out; `findings` is for the custodian; `synthesize` invents microdata.
"""
