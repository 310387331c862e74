"""The loader of SQL files, and its grammar."""

import pytest

from laneway.sqlfile import DIALECTS, Piece, pieces, read_blocks, statements


def test_blocks_are_found_by_name_without_comments() -> None:
    text = "-- A header.\n\n-- name: one\n-- $1: n.\nselect $1\n\n-- name: two\nselect 2\n"
    assert read_blocks(text) == {"one": "select $1", "two": "select 2"}


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="two statements are called 'one'"):
        read_blocks("-- name: one\nselect 1\n-- name: one\nselect 2\n")


def test_parameters_are_cut_out_with_their_forms() -> None:
    assert pieces("in ($1...) and $queue = q") == (
        Piece("in (", "1", "..."),
        Piece(") and ", "queue"),
        Piece(" = q"),
    )
    assert pieces("from $table:name") == (Piece("from ", "table", "name"), Piece(""))


@pytest.mark.parametrize("text", ["do $$select 1$$", "$tag$x$tag$", "'$[*]'", "a$1"])
def test_other_dollars_are_left_alone(text: str) -> None:
    assert pieces(text) == (Piece(text),)


def test_a_cast_is_no_form() -> None:
    assert pieces("$1::text") == (Piece("", "1"), Piece("::text"))


def test_a_file_may_be_for_some_dialects_only() -> None:
    found = {dialect: statements("laneway.lake", dialect) for dialect in DIALECTS}
    assert "purge_day" in found["postgresql"] and "purge_day" not in found["mysql"]
    assert found["mysql"]["mark"] == found["sqlite"]["mark"] != found["postgresql"]["mark"]
    assert found["mysql"]["clock"] != found["sqlite"]["clock"]
