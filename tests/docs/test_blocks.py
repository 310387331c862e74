"""Every block of every page does what the page says, as a script and pasted into the interpreter.

Pages with blocks for Spark are read in tests/spark/test_pages.py.
"""

from collections import Counter
from pathlib import Path

import pytest

from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from tests.docs.pages import LANGUAGES, PASTED, ROOT, blocks, pages, uses_spark
from tests.docs.reader import read

_LATER = pytest.mark.repeats("make test reads the tutorial, CI all pages")
_WITH_BLOCKS = [
    page if page == "docs/tutorial.md" else pytest.param(page, marks=_LATER)
    for page in pages()
    if blocks(page) and not uses_spark(page)
]
# Change it when another block is only shown, and say why in the comment above the block.
_NOT_RUN = 24


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", _WITH_BLOCKS)
def test_every_block_of_a_page_runs(page: str, server: EmbeddedPostgres, tmp_path: Path) -> None:
    read(page, server, tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.repeats("the same blocks as a script")
@pytest.mark.parametrize("page", [page for page in PASTED if not uses_spark(page)])
def test_blocks_can_be_pasted_into_the_interpreter(
    page: str, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    read(page, server, tmp_path, paste=True)


def test_sql_for_mariadb_runs(mariadb: EmbeddedMariaDB) -> None:
    found = [block for page in pages() for block in blocks(page) if block.on_mariadb]
    assert found
    mariadb.create_database("shop")
    for block in found:
        mariadb.execute(block.code)


def test_every_block_is_run_or_says_why_not() -> None:
    found = [block for page in pages() for block in blocks(page)]
    unknown = [str(block) for block in found if block.language not in LANGUAGES]
    assert not unknown, f"say the language of these blocks: {unknown}"
    shown = [block for block in found if block.not_run]
    assert all(len(block.not_run) > 10 for block in shown), "a reason, please"
    languages = Counter(block.language for block in found)
    assert languages["python"] > 60 and languages["sh"] > 30
    assert len(shown) == _NOT_RUN, [f"{block}: {block.not_run}" for block in shown]


def test_fences_are_closed() -> None:
    for page in pages():
        assert (ROOT / page).read_text().count("\n```") % 2 == 0, page
