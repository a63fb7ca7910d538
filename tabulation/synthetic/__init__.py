"""Generated microdata, from the declared shape of the data alone: no record describes a real person.

`nesting` decides how many rows there are and which group each lies in, `areas` where they live, `demands` and `strata`
what the spec asks of them, `laws` how often each value occurs, `ordering` and `drawing` draw the columns, and `repair`
mends what is left. `arrays`, `dirt` and `files` write them down; `marking` says, and later proves, that a file was
generated. `variables`, `matches` and `population` are what all of them share.

Everything is held as *places*: the declared values of a column numbered from 0 in declared order.
"""
