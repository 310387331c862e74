"""Commands act through the operator: without its right each is refused, as on the pages."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from laneway.cli.app import app
from laneway.operator import ADMIN, VERBS, Principal, Right
from tests.control.operator_calls import MINE, World, a_world

Words = Callable[[World], list[str]]

COMMANDS: dict[str, Words] = {
    "limit": lambda w: ["channels", "limit", MINE, "--concurrency", "3"],
    "set_shared_limit": lambda w: ["shared-limits", "api", "--concurrency", "3"],
    "remove_shared_limit": lambda w: ["shared-limits", "api", "--remove", "--yes"],
    "set_fairness": lambda w: ["fairness", "--by", "time"],
    "pause_channel": lambda w: ["channels", "pause", MINE],
    "resume_channel": lambda w: ["channels", "resume", MINE],
    "remove_channel": lambda w: ["channels", "remove", MINE, "--yes"],
    "pause": lambda w: ["pause", "--kind", "mail"],
    "resume": lambda w: ["resume", "--kind", "sms"],
    "run_now": lambda w: ["run-now", str(w.scheduled[MINE])],
    "cancel": lambda w: ["cancel", str(w.waiting[MINE]), "--yes"],
    "redrive": lambda w: ["dead", "redrive", str(w.dead[MINE]), "--yes"],
    "discard": lambda w: ["dead", "discard", str(w.dead[MINE]), "--yes"],
    "start_redrive": lambda w: ["dead", "redrive", "--kind", "mail", "--yes"],
    "start_discard": lambda w: ["dead", "discard", "--kind", "mail", "--yes"],
    "pause_schedule": lambda w: ["schedules", "pause", f"of {MINE}"],
    "resume_schedule": lambda w: ["schedules", "resume", f"of {MINE}"],
    "run_schedule": lambda w: ["schedules", "run", f"of {MINE}"],
    "remove_schedule": lambda w: ["schedules", "remove", f"of {MINE}", "--yes"],
    "subscribe": lambda w: ["topics", "subscribe", "bills"],
    "unsubscribe": lambda w: ["topics", "unsubscribe", "orders"],
    "redrive_flow": lambda w: ["flows", "redrive", "1", "--yes"],
    "cancel_flow": lambda w: ["flows", "cancel", "1", "--yes"],
}
# Publishing is for producers; the others have no command.
WITHOUT = {"publish", "configure", "cancel_operation"}


def test_every_action_is_here() -> None:
    assert set(COMMANDS) | WITHOUT == {name for name, verb in VERBS.items() if verb.acts}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_needs_the_right_of_its_verb(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = VERBS[name].right
    with a_world(tmp_path / "jobs.db") as world:
        environment = {"DATABASE_URL": f"sqlite:///{tmp_path / 'jobs.db'}"}

        def run(rights: frozenset[Right]) -> tuple[int, str]:
            monkeypatch.setattr("laneway.operator.admin", lambda user: Principal(user, rights))
            done = CliRunner().invoke(app, COMMANDS[name](world), env=environment)
            return done.exit_code, done.output

        code, said = run(ADMIN - {right})
        assert code != 0, said
        assert f"needs the right '{right.value}'" in said
        assert world.queue.audit() == []
        code, said = run(frozenset({right, Right.VIEW}))
        assert code == 0, said
        assert [(e.action, e.source) for e in world.queue.audit()] == [(name, "cli")]
