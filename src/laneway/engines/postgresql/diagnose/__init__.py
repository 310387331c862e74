"""Findings on the server and the schema, for ``laneway doctor``."""
