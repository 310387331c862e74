"""The pages that use Spark: their blocks run in the session of these tests."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laneway.dev.embedded import EmbeddedPostgres
from tests.docs.pages import PASTED, pages, uses_spark
from tests.docs.reader import read


@pytest.mark.parametrize("page", [page for page in pages() if uses_spark(page)])
def test_every_block_of_a_page_runs(
    page: str, spark: SparkSession, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    read(page, server, tmp_path)


@pytest.mark.parametrize("page", [page for page in PASTED if uses_spark(page)])
@pytest.mark.repeats("the same blocks as a script")
def test_blocks_can_be_pasted_into_the_interpreter(
    page: str, spark: SparkSession, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    read(page, server, tmp_path, paste=True)
