"""The shop's own tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("cents", sa.Integer, nullable=False),
        sa.Column("invoice", sa.String),
    )


def downgrade() -> None:
    op.drop_table("orders")
