"""Writing outcomes to the database."""
