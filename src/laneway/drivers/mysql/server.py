"""A question to a MySQL server about itself."""

SERVER_READ_ONLY = (
    "select cast(@@global.read_only as char) not in ('0', 'OFF') or @@global.innodb_read_only"
)
"""Of the server, not of a transaction or a session. MariaDB 12 answers words."""
