"""A lake in an object store: sync, verify, compact, purge, erase and report, on a real server."""

import io
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from laneway.errors import LakeMismatch
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory
from tests.open_lake.fixtures import BATCH, positions, rows_of

SECRET = "canary-of-the-tests"
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
OLD = timedelta(0)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.update(SETTINGS)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(endpoint: str) -> Any:
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="lakes")
    yield client
    for name in objects(client):
        client.delete_object(Bucket="lakes", Key=name)


@pytest.fixture
def root(endpoint: str, store: Any) -> str:
    host = endpoint.removeprefix("http://")
    return f"s3://lakes/shop/lake?scheme=http&endpoint_override={host}"


@pytest.fixture
def lake(url: str, root: str) -> Lake:
    return Lake(url, root)


def objects(client: Any) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="lakes")
    return [one["Key"] for page in pages for one in page.get("Contents", ())]


def body(client: Any, name: str) -> bytes:
    found: bytes = client.get_object(Bucket="lakes", Key=name)["Body"].read()
    return found


def test_all_rows_arrive_once_and_are_verified(
    lake: Lake, story: SyntheticHistory, store: Any
) -> None:
    assert lake.sync(BATCH).rows == story.history.num_rows
    assert len(set(positions(rows_of(lake)))) == story.history.num_rows
    done = lake.verify()
    assert done.batches >= 3 and not done.damaged
    assert not [name for name in objects(store) if "~" in name], "nothing is left aside"
    assert lake.sync(BATCH).rows == 0


def test_a_damaged_and_a_missing_object_are_found_and_written_again(
    lake: Lake, store: Any, story: SyntheticHistory
) -> None:
    lake.sync(BATCH)
    first, second, *_ = (f"shop/lake/{file.path}" for file in lake.folder.history_files())
    store.put_object(Bucket="lakes", Key=first, Body=body(store, first)[:-9])
    store.delete_object(Bucket="lakes", Key=second)
    assert len(lake.verify().damaged) == 2
    lake.sync(BATCH)
    assert not lake.verify().damaged
    assert len(set(positions(rows_of(lake)))) == story.history.num_rows


def test_compact_and_purge(lake: Lake, story: SyntheticHistory) -> None:
    lake.sync(BATCH)
    lake.verify()
    before = positions(rows_of(lake))
    assert lake.compact(OLD).days > 0
    assert positions(rows_of(lake)) == before
    assert not lake.verify(everything=True).damaged
    gone = [day for day in lake.purge(OLD) if day.stays is None]
    assert gone and positions(rows_of(lake)) == before


def test_a_tenant_is_erased(lake: Lake, store: Any) -> None:
    """Read by another client of the store, object by object."""
    lake.sync(BATCH)
    lake.verify()
    lake.report()
    channel = rows_of(lake)["channel"][0].as_py()
    others = [row for row in rows_of(lake).to_pylist() if row["channel"] != channel]
    done = lake.erase(channel)
    assert done.lake_rows > 0 and done.found_again == 0
    for name in objects(store):
        if name.endswith(".parquet"):
            rows = pq.read_table(io.BytesIO(body(store, name)))
            assert channel not in rows["channel"].to_pylist(), name
        else:
            assert channel.encode() not in body(store, name), name
    left = rows_of(lake).to_pylist()
    assert sorted(map(repr, left)) == sorted(map(repr, others))
    assert not lake.verify(everything=True).damaged


def test_a_report(lake: Lake, store: Any, tmp_path: Path) -> None:
    """The same as of a folder with these files."""
    lake.sync(BATCH)
    page = lake.report().page
    assert page == "s3a://lakes/shop/lake/report/report.html"
    assert b"<html" in body(store, "shop/lake/report/report.html").lower()
    for name in objects(store):
        if (name.endswith(".parquet") and "/report/" not in name) or name.endswith("numbers.json"):
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body(store, name))
    local = Lake(None, tmp_path / "shop/lake")
    local.report()
    for table in ("flow", "lanes", "hours", "outlook"):
        mine, theirs = (one.folder.read_rows(f"report/tables/{table}") for one in (lake, local))
        assert sorted(map(repr, mine)) == sorted(map(repr, theirs)) and mine


def test_killed_at_some_of_the_steps(url: str, root: str, story: SyntheticHistory) -> None:
    """Of a sync, a compaction and an erasing; each kill leaves what the next one finishes."""
    channel = story.history["channel"][0].as_py()
    works = {
        "sync": [sys.executable, "-c", _CHILD, url, root, "sync"],
        "compact": [sys.executable, "-c", _CHILD, url, root, "compact"],
        "erase": [sys.executable, "-c", _CHILD, url, root, f"erase {channel}"],
    }
    killed = 0
    for name, command in works.items():
        for count in (1, 2, 3, 6, 11):
            done = subprocess.run([*command, str(count)], capture_output=True, text=True)
            assert done.returncode in (0, -9), done.stderr
            killed += done.returncode == -9
            if done.returncode == 0:
                break
        done = subprocess.run([*command, "0"], capture_output=True, text=True)
        assert done.returncode == 0, (name, done.stderr)
    assert killed >= 8
    lake = Lake(url, root)
    rows = rows_of(lake)
    kept = [c for c in story.history["channel"].to_pylist() if c != channel]
    assert len(set(positions(rows))) == rows.num_rows == len(kept)
    assert channel not in rows["channel"].to_pylist()
    assert not lake.verify(everything=True).damaged


_CHILD = """
import sys
from datetime import timedelta
from laneway.lake import Lake
from laneway.lake.folder import Folder
from tests.open_lake import fixtures
url, root, step, count = sys.argv[1:]
name, _, channel = step.partition(" ")
lake = Lake(url, root)
def work():
    if name == "sync":
        lake.sync(120); lake.verify()
    elif name == "compact":
        lake.verify(); lake.compact(timedelta(0))
    else:
        lake.erase(channel)
fixtures.dies_at(work, [(Folder, "write_aside"), (Folder, "move"), (Folder, "remove")], int(count))
"""


def test_no_secret_is_said_or_written(url: str, root: str, store: Any, tmp_path: Path) -> None:
    """Neither of the environment nor of the URL: in output, errors, objects, or the database."""
    inside = root.replace("s3://", f"s3://nobody:{SECRET}@").replace("s3:", "s3a:")
    said = ""
    for arguments in (
        ["sync"],
        ["verify"],
        ["status"],
        ["report"],
        ["sync", "--batch-rows", "0"],
    ):
        command = [sys.executable, "-m", "laneway.cli", "lake", *arguments, "--lake", inside]
        command += [] if arguments[0] == "report" else ["--url", url]
        done = subprocess.run(command, capture_output=True, text=True)
        said += done.stdout + done.stderr
    wrong = inside.replace("lakes/", "no-such-bucket/")
    with pytest.raises(LakeMismatch) as refused:
        Lake(url, wrong).sync()
    said += str(refused.value) + repr(Lake(url, inside).folder)
    assert "report.html" in said and SECRET not in said
    assert all(SECRET.encode() not in body(store, name) for name in objects(store))
    dump = sqlite3.connect(url.removeprefix("sqlite:///"))
    assert not [line for line in dump.iterdump() if SECRET in line]
    dump.close()
