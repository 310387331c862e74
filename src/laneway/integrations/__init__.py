"""Laneway inside the frameworks that a team has already; each imports only its own."""


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
