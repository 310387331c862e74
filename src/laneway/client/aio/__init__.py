"""The client for asyncio: the source from which ``sync`` is generated."""
