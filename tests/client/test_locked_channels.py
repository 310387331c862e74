"""Somebody keeps a channel's row locked: claims go on with the others, then they are busy."""

import psycopg
from psycopg import sql

from laneway import ClaimStatus, NewMessage, Queue
from tests.place import Place


def test_a_channel_that_somebody_keeps_locked(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue, psycopg.connect(place.url) as other:
        queue.install()
        for channel in ("kept", "free") * 3:
            queue.publish(1, channel=channel)
        queue.complete(queue.claim(4))  # that creates their rows
        table = sql.Identifier(place.schema, "channel")
        lock = sql.SQL("select from {} where name = 'kept' for update").format(table)
        other.execute(lock)
        queue.publish_many([NewMessage(2, channel=channel) for channel in ("kept", "free")])
        while claim := queue.claim():
            assert {message.channel for message in claim} == {"free"}
        assert claim.status is ClaimStatus.BUSY
        other.rollback()
        assert {message.channel for message in queue.claim(10)} == {"kept"}
