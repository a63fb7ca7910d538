"""When releases run: calendar arithmetic without an orchestrator, and the dates handed to one.

`calendar` turns a schedule into occurrences; `clock` and `editions` are its two tables of rules; `due` says which
occurrences are to be run now and which were missed; `rdates` writes instants as Prefect reads them.
"""
