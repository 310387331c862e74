"""Laneway inside the frameworks that a team has already; each imports only its own."""

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
"""What libpq itself understands of a connection's options, without who, where and in which
encoding. Frameworks mix them with their own."""


def airflow_provider_info() -> dict[str, object]:
    """What Airflow asks for when it looks for providers. Here, because Airflow itself cannot be
    imported yet when it asks."""
    from laneway import __version__

    return {
        "package-name": "laneway",
        "name": "Laneway",
        "description": "Durable multi-tenant message queues in the SQL database you already run",
        "versions": [__version__],
        "queues": ["laneway.integrations.airflow.LanewayMessageQueueProvider"],
    }
