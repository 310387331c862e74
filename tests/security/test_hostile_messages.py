"""A worker that is sent hostile bytes: a dead letter with the reason, and never code."""

import pickle
from pathlib import Path

from laneway import Queue
from tests.security.hostile_handlers import worker_on


class Bomb:
    """What a pickle would run when it is read."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (self._mark,)  # type: ignore[return-value]


def deep(depth: int) -> bytes:
    return b'{"child":' * depth + b"null" + b"}" * depth


def hostile_payloads(mark: Path) -> dict[str, bytes]:
    return {
        "a pickle": pickle.dumps(Bomb(mark)),
        "yaml": f"!!python/object/apply:os.mknod ['{mark}']".encode(),
        "no utf-8": b"\xff\xfe{",
        "a million deep": b"[" * 1_000_000,
        "deep enough": b'{"id":' + b"[" * 400 + b"]" * 400 + b"}",
        "half a pair": b'{"id": "\\ud800"}',
        "not a number": b'{"id": NaN}',
        "a long number": b'{"id": ' + b"9" * 5000 + b"}",
        "empty": b"",
        "null": b"null",
        "another type": b'{"id": "1; drop table message"}',
    }


def test_hostile_bytes_become_dead_letters(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    url = f"sqlite:///{tmp_path / 'worker.db'}"
    payloads = hostile_payloads(mark)
    kinds = ("dict", "order", "async", "process")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        for kind in kinds:
            for payload in payloads.values():
                queue.publish(payload, kind=kind, content_type="application/json")
        for depth in (300, 900):
            queue.publish(deep(depth), kind="node", content_type="application/json")
        queue.publish(b"\xff\x80", kind="text", content_type="text/plain")
        worker_on(url).run(until_empty=True)
        letters = queue.dead_letters.list(limit=1000)
        assert {letter.reason for letter in letters} == {"payload"}
        assert len(letters) == len(kinds) * len(payloads) + 3
        assert all(letter.error_type == "laneway.errors.DecodeError" for letter in letters)
        assert all(letter.error and len(letter.error) < 500 for letter in letters)
        assert all(letter.attempt == 1 for letter in letters), "tried again, which mends nothing"
        assert {letter.payload for letter in letters} >= set(payloads.values())
    assert not mark.exists()


def test_no_module_of_ours_can_run_what_it_reads() -> None:
    """No pickle, marshal, shelve or eval anywhere in the package."""
    import laneway

    words = ("import pickle", "import marshal", "import shelve", "yaml.load", " eval(", " exec(")
    root = Path(laneway.__file__).parent
    found = [
        f"{file.relative_to(root)}: {word.strip()}"
        for file in root.rglob("*.py")
        for word in words
        if word in file.read_text(encoding="utf-8")
    ]
    assert found == []
