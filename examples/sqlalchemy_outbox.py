"""SQLAlchemy: an order and its message in one transaction; its effect and completion in another.

DATABASE_URL=postgresql://localhost/shop python examples/sqlalchemy_outbox.py
"""

import os

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from laneway import Queue
from laneway.integrations.sqlalchemy import url_of

engine = create_engine(os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:"))
queue = Queue(url_of(engine))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "order_with_receipt"

    id: Mapped[int] = mapped_column(primary_key=True)
    receipts: Mapped[int] = mapped_column(default=0)


def place_order(fail: bool = False) -> None:
    with Session(engine) as session, session.begin():
        order = Order()
        session.add(order)
        session.flush()
        queue.publish({"order": order.id}, channel="tenant-42", connection=session)
        if fail:
            raise RuntimeError("the card was declined")


def send_receipts() -> int:
    claim = queue.claim(limit=10)
    for message in claim:
        with Session(engine) as session, session.begin():
            order = session.get_one(Order, message.json()["order"])
            order.receipts += 1
            message.complete(connection=session)  # both, or neither
    return len(claim)


if __name__ == "__main__":
    queue.install()
    Base.metadata.create_all(engine)
    place_order()
    try:
        place_order(fail=True)
    except RuntimeError as error:
        print(f"rolled back: {error}")
    print(f"receipts sent: {send_receipts()}, then: {send_receipts()}")
    with Session(engine) as session:
        print(f"orders: {[order.receipts for order in session.scalars(select(Order))]}")
    queue.close()
    engine.dispose()
