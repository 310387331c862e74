"""What became of messages whose handlers ran on executors."""

import json
from typing import Any

import psycopg

from laneway import NewMessage
from tests.place import Place
from tests.spark.jobs import LEDGER


def make_ledger(place: Place) -> None:
    do(place, LEDGER)


def do(place: Place, text: str) -> None:
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(text.encode())


def note(place: Place, kind: str, channel: str = "default", **payload: Any) -> NewMessage:
    payload = {"url": place.url, "schema": place.schema, "seconds": 0, "n": 1, **payload}
    return NewMessage(json.dumps(payload).encode(), kind=kind, channel=channel)


def look(place: Place, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.url) as connection:
        connection.execute("select set_config('search_path', %s, false)", [f'"{place.schema}"'])
        return connection.execute(text.encode()).fetchall()


def ran(place: Place, columns: str, where: str = "true") -> list[tuple[Any, ...]]:
    text = f"select {columns} from public.ran where schema = '{place.schema}' and {where}"  # noqa: S608
    return look(place, text)


def at_once(place: Place, channel: str) -> int:
    """How many handlers of a channel ran at the same moment, at most. One that was killed is taken
    to have run until its lease had run out."""
    text = f"""
        with run as (
            select r.message_id, r.attempt, r.began, coalesce(r.ended, h.ended_at) as ended
            from public.ran r
            left join history h on h.message_id = r.message_id and h.attempt = r.attempt
                and h.outcome = 'expired'
            where r.schema = '{place.schema}' and r.channel = '{channel}')
        select max(n) from (
            select count(*) as n from run a
            join run b on b.began <= a.began and b.ended > a.began
            group by a.message_id, a.attempt) x"""  # noqa: S608
    return int(look(place, text)[0][0])
