"""The queue, in a schema of its own."""

from laneway.integrations import alembic as laneway

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    laneway.install(version=1)


def downgrade() -> None:
    laneway.uninstall()  # with all messages
