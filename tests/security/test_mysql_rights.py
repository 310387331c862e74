"""MySQL and MariaDB have no functions of ours with other rights: tables are granted."""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.errors import DatabaseFailed
from tests.security.test_roles import VERBS

DATABASE = "rights of users"
REFUSED = {"1044", "1142", "1143", "1370"}  # access denied: database, table, column
# A listener has a mailbox, so listening writes.
LOOKS = (
    "schema_version clock schedules next_firing messages message channels policy queue_stats "
    "channel_stats count_dead_letters history history_since totals settings subscriptions "
    "endings progress results payload dead_letters notify_channel diagnose minutes workers "
    "dead_letter_groups parents flows flow flow_nodes flow_place dead_nodes"
)
OWNERS = {"uninstall", "install_roles"}
USERS = {
    "app": "select, insert, update, delete",
    "reader": "select",
}


class Clients(NamedTuple):
    app: Queue
    reader: Queue
    stranger: Queue


@pytest.fixture(scope="module")
def clients(mariadb: EmbeddedMariaDB) -> Iterator[Clients]:
    url = mariadb.create_database(DATABASE)
    made = []
    with Queue(url, upkeep_every=None) as owner:
        owner.install()
        for user in (*USERS, "stranger"):
            mariadb.execute(f"create user '{user}'@'%' identified by 'canary'")
            if rights := USERS.get(user):
                mariadb.execute(f"grant {rights} on `{DATABASE}`.* to '{user}'@'%'")
            else:
                mariadb.execute(f"grant select on mysql.time_zone to '{user}'@'%'")
            theirs = url.replace("root@", f"{user}:canary@")
            made.append(Queue(theirs, upkeep_every=None, pool_size=1))
        yield Clients(*made)
    for client in made:
        client.close()


def test_what_who_installs_needs(mariadb: EmbeddedMariaDB) -> None:
    """As docs/how-to/roles.md says."""
    url = mariadb.create_database("installed by a user")
    rights = "select, insert, update, delete, create, alter, drop, index, create view"
    mariadb.execute("create user 'installer'@'%' identified by 'canary'")
    mariadb.execute(f"grant {rights} on `installed by a user`.* to 'installer'@'%'")
    with Queue(url.replace("root@", "installer:canary@"), upkeep_every=None) as queue:
        queue.install()
        queue.publish(1)
        queue.complete(queue.claim())
        queue.upkeep()
        queue.uninstall()


def test_rights_on_the_rows_are_enough_to_publish_work_and_operate(clients: Clients) -> None:
    database = clients.app.database
    for name, verb in VERBS.items():
        if name not in OWNERS:
            database.run(verb.plan(database.engine), atomic=verb.atomic)
    for flow in database.run(database.engine.flows.flows(None, 10, None)):  # its name is free again
        database.run(database.engine.flows.cancel_flow(flow.id), atomic=True)
    database.run(database.engine.maintenance.upkeep(), atomic=True)


def test_the_schema_is_its_owners(clients: Clients) -> None:
    database = clients.app.database
    with pytest.raises(DatabaseFailed) as refused:
        database.run(database.engine.schema.uninstall(), atomic=True)
    assert refused.value.sqlstate in REFUSED


@pytest.mark.parametrize("name", LOOKS.split())
def test_the_right_to_read_is_enough_to_look(clients: Clients, name: str) -> None:
    database, verb = clients.reader.database, VERBS[name]
    database.run(verb.plan(database.engine), atomic=verb.atomic)


@pytest.mark.parametrize(
    "name", ["publish", "publish_topic", "publish_flow", "claim", "configure", "subscribe"]
)
def test_who_may_only_read_writes_nothing(clients: Clients, name: str) -> None:
    clients.app.topic("t").subscribe("q")
    clients.app.publish("to be claimed", queue="q", channel=name)
    database, verb = clients.reader.database, VERBS[name]
    with pytest.raises(DatabaseFailed) as refused:
        database.run(verb.plan(database.engine), atomic=verb.atomic)
    assert refused.value.sqlstate in REFUSED, refused.value


def test_a_stranger_does_not_even_connect(clients: Clients) -> None:
    with pytest.raises(DatabaseFailed) as refused:
        clients.stranger.publish(1)
    assert refused.value.sqlstate in REFUSED
    assert quote(DATABASE) not in str(refused.value) and "canary" not in str(refused.value)
