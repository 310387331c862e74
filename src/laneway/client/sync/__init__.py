"""The client for ordinary code, generated from ``aio`` by scripts/make_sync.py."""
