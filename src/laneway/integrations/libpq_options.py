"""What libpq itself understands of a connection's options. Frameworks mix them with their own."""

# fmt: off
LIBPQ_WORDS = frozenset((
    "application_name", "channel_binding", "connect_timeout", "fallback_application_name",
    "gssdelegation", "gssencmode", "gsslib", "hostaddr", "keepalives", "keepalives_count",
    "keepalives_idle", "keepalives_interval", "krbsrvname", "load_balance_hosts",
    "max_protocol_version", "min_protocol_version", "options", "passfile", "require_auth",
    "requirepeer", "service", "sslcert", "sslcertmode", "sslcompression", "sslcrl", "sslcrldir",
    "sslkey", "sslkeylogfile", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert",
    "sslsni", "ssl_max_protocol_version", "ssl_min_protocol_version", "target_session_attrs",
    "tcp_user_timeout",
))
# fmt: on
"""Without who, where and in which encoding."""
