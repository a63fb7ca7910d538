"""Releases on schedule: `margrave serve`.

`verb` has the verbs; `supervising` keeps a server and a runner alive; `runner` registers the dates with Prefect and
looks round; `dates` are those dates; `firing` has the two flows that fire; `claims` says which edition a firing stands
for; `needs` which editions want something now; `duty` keeps what is known of each between two firings; `notify` tells
whoever wants to be told.
"""
