"""The ground that the flows stand on: the private folder of the local server, its settings, and the server itself.

Nothing here but `served` imports Prefect: settings must stand in the environment before Prefect is first imported.
"""
