"""The deployments file of `margrave serve`: which specs run on schedule, with which references.

`language` has its words, `load` reads a file and tells every mistake at once, `prefect_yaml` writes the deployments
for Prefect's work pools.
"""
