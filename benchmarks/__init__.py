"""What Laneway costs, measured on a PostgreSQL of its own; `make bench` and its siblings."""
