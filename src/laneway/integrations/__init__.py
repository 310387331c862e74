"""Laneway inside the frameworks that a team has already; each imports only its own."""
