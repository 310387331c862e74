"""What Django's contract says of tasks, on Laneway's backend."""

import json
import logging
from datetime import timedelta
from io import StringIO
from typing import Any

from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from laneway.integrations.django import queue
from laneway.integrations.django.task_api import (
    TaskResultDoesNotExist,
    TaskResultStatus,
    default_task_backend,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from laneway.integrations.django.tasks import LanewayBackend

from . import jobs


def work(**options: Any) -> None:
    call_command("laneway_worker", until_empty=True, verbosity=0, **options)


class Case(TransactionTestCase):  # type: ignore[misc]
    def setUp(self) -> None:
        jobs.seen.clear()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)


def waiting() -> int:
    return sum(stats.waiting + stats.scheduled for stats in queue.stats())


class Enqueue(Case):
    def test_what_is_no_json_raises_and_publishes_nothing(self) -> None:
        for wrong in (timezone.now(), object(), {1}, b"\xff", {(1, 2): 3}):
            with self.subTest(wrong), self.assertRaises((TypeError, ValueError)):
                jobs.tell.enqueue(wrong)
        self.assertEqual(waiting(), 0)

    def test_the_task_is_given_what_the_result_reports(self) -> None:
        results = [jobs.tell.enqueue(given) for given in (b"abc", (1, 2), {1: 2}, 1.5, None, "ä")]
        work()
        self.assertEqual(
            sorted(json.dumps(args) for args, _ in jobs.seen),
            sorted(json.dumps(result.args) for result in results),
        )
        self.assertEqual(results[0].args, ["abc"])

    def test_it_belongs_to_the_transaction(self) -> None:
        with transaction.atomic():
            result = jobs.add.enqueue(1, 2)
            self.assertEqual(jobs.add.get_result(result.id), result)
            transaction.set_rollback(True)
        with self.assertRaises(TaskResultDoesNotExist):
            jobs.add.get_result(result.id)

    async def test_async_receivers_are_awaited(self) -> None:
        received = []
        if not hasattr(task_enqueued, "asend"):
            self.skipTest("Django 4.2 has no async receivers")

        async def receive(task_result: Any, **signal: Any) -> None:
            received.append(task_result)

        task_enqueued.connect(receive)
        try:
            result = await jobs.add.aenqueue(1, 2)
        finally:
            task_enqueued.disconnect(receive)
        self.assertEqual(received, [result])
        self.assertEqual(await jobs.add.aget_result(result.id), result)

    def test_a_key_holds_while_its_task_is_unfinished(self) -> None:
        first, second = jobs.report.enqueue(), jobs.report.enqueue()
        self.assertEqual(first, second)
        self.assertEqual(queue.message(int(first.id)).channel, "tenant-42")
        other = jobs.report.using(channel="tenant-43", key="other").enqueue()
        self.assertEqual(queue.message(int(other.id)).channel, "tenant-43")
        self.assertEqual(jobs.report.get_result(other.id).task.channel, "tenant-43")
        work()
        self.assertEqual(jobs.seen, ["report", "report"])

    def test_a_task_starts_behind_the_limits_that_it_names(self) -> None:
        queue.limits["mail"].set(concurrency=1)
        for number in range(2):
            jobs.add.using(limits=("mail",)).enqueue(number, 2)
        (message,) = queue.claim(2)
        self.assertEqual(tuple(message.limits), ("mail",))
        message.complete()
        work()
        self.assertEqual(queue.stats(), [])


class Run(Case):
    def test_a_failed_task_is_not_run_again(self) -> None:
        result = jobs.fail.enqueue("because")
        work()
        self.assertEqual(jobs.seen, ["failed"])
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        self.assertEqual(result.attempts, 1)
        self.assertEqual(result.errors[0].exception_class, ValueError)
        self.assertTrue(result.errors[0].traceback.endswith("ValueError: because\n"))
        self.assertIn("jobs.py", result.errors[0].traceback)
        self.assertGreaterEqual(result.started_at, result.enqueued_at)
        self.assertGreaterEqual(result.finished_at, result.started_at)

    def test_what_a_task_returned_can_be_read(self) -> None:
        results = [jobs.add.enqueue(1, 2), jobs.add_async.enqueue(3, 4)]
        unkept = jobs.add.using(keep_result=0).enqueue(1, 2)
        work(worker_id="me")
        for result in results:
            result.refresh()
            self.assertEqual(result.status, TaskResultStatus.SUCCESSFUL)
            self.assertEqual(result.return_value, sum(result.args))
            self.assertEqual(result.worker_ids, ["me"])
            self.assertGreaterEqual(result.started_at, result.enqueued_at)
            self.assertGreaterEqual(result.finished_at, result.started_at)
            self.assertEqual(result.task.get_result(result.id), result)
        with self.assertRaises(TaskResultDoesNotExist):
            unkept.refresh()

    def test_a_task_or_its_backend_can_say_how_often(self) -> None:
        results = [jobs.fail_twice.enqueue(), jobs.fail_in_second.enqueue()]
        work()
        self.assertEqual(len(jobs.seen), 4)
        for result in results:
            result.refresh()
            self.assertEqual(result.attempts, 2)
            self.assertEqual(len(result.errors), 2)

    def test_the_context_knows_the_attempts_before(self) -> None:
        result = jobs.second_time_lucky.enqueue(tenant="tenant-1")
        self.assertEqual(queue.message(int(result.id)).channel, "tenant-1")
        work(worker_id="the worker")
        result.refresh()
        self.assertEqual(result.return_value, 7)
        self.assertEqual(result.errors[0].exception_class, ConnectionError)
        self.assertEqual(
            jobs.seen,
            [
                [1, [], ["the worker"]],
                [2, ["ConnectionError: try again\n"], ["the worker", "the worker"]],
            ],
        )

    def test_exits_and_unspeakable_values_are_failures(self) -> None:
        left, unspeakable = jobs.leave.enqueue(), jobs.unspeakable.enqueue()
        work()
        left.refresh()
        unspeakable.refresh()
        self.assertEqual(left.errors[0].exception_class, SystemExit)
        self.assertEqual(unspeakable.errors[0].exception_class, TypeError)
        self.assertIn("not JSON serializable", unspeakable.errors[0].traceback)

    def test_only_tasks_are_called(self) -> None:
        for path in ("subprocess.check_output", "tests.django_backend.jobs.not_a_task", "no.where"):
            result = jobs.add.enqueue(1, 2)
            payload = json.loads(queue.payload(int(result.id)))
            queue.cancel([int(result.id)])
            id = queue.publish({**payload, "task": path}, kind="django.task").id
            work()
            self.assertEqual(queue.message(id).state, "dead")

    def test_signals(self) -> None:
        told: list[Any] = []

        def receive(signal: Any, sender: Any, task_result: Any, **rest: Any) -> None:
            told.append((names[signal], sender, task_result.status.value, task_result.id))

        names = {task_enqueued: "enqueued", task_started: "started", task_finished: "finished"}
        for signal in names:
            signal.connect(receive)
            self.addCleanup(signal.disconnect, receive)
        result, failed = jobs.add.enqueue(1, 2), jobs.fail_twice.enqueue()
        work(concurrency=1)
        mine, other = result.id, failed.id
        backend = type(default_task_backend._connections[default_task_backend._alias])
        self.assertEqual({sender for _, sender, _, _ in told}, {backend})
        self.assertEqual(
            [(name, status) for name, _, status, id in told if id == mine],
            [("enqueued", "READY"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")],
        )
        self.assertEqual(
            [(name, status) for name, _, status, id in told if id == other],
            [
                ("enqueued", "READY"),
                ("started", "RUNNING"),
                ("started", "RUNNING"),
                ("finished", "FAILED"),
            ],
        )

    def test_tasks_start_by_priority(self) -> None:
        for priority in (0, -100, 100, -1, 99, 1, 11):
            jobs.tell.using(priority=priority).enqueue(priority)
        work(concurrency=1)
        self.assertEqual([args[0] for args, _ in jobs.seen], [100, 99, 11, 1, 0, -1, -100])

    def test_priorities_below_the_lowest(self) -> None:
        for priority in (-100, 0, 50, 100):
            jobs.tell.using(backend="second", priority=priority).enqueue(priority)
        work(concurrency=1, backend=["second"])
        self.assertEqual([args[0] for args, _ in jobs.seen], [100, 50, -100, 0])

    def test_run_after(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        result = jobs.add.using(run_after=later).enqueue(1, 2)
        work()
        self.assertEqual(jobs.add.get_result(result.id), result)
        self.assertEqual(jobs.add.get_result(result.id).task.run_after, later)


class Command(Case):
    def test_queues(self) -> None:
        jobs.tell.using(queue_name="mail").enqueue("mail")
        jobs.tell.using(queue_name="rare").enqueue("rare")
        jobs.tell.enqueue("default")
        work()
        self.assertEqual(jobs.seen, [[["default"], {}]])
        work(queue=["*"], exclude_queues=["mail"])
        self.assertEqual(jobs.seen[1:], [[["rare"], {}]])
        work(queue=["default,mail"])
        self.assertEqual(jobs.seen[2:], [[["mail"], {}]])

    def test_most_tasks(self) -> None:
        for n in range(5):
            jobs.tell.enqueue(n)
        work(max_tasks=2, concurrency=1)
        self.assertEqual(len(jobs.seen), 2)
        self.assertEqual(waiting(), 3)

    def test_wrong_options(self) -> None:
        for wrong, said in (
            (["--backend", "unknown"], "The connection 'unknown' doesn't exist."),
            (["--backend", "elsewhere"], "Backend 'elsewhere' is not a Laneway backend"),
            (["--max-tasks", "0"], "Must be greater than zero"),
            (["--worker-id", ""], "Worker id must not be empty"),
            (["--worker-id", "A" * 65], "Worker ids must be shorter than 64 characters"),
            (["--exclude-queues", "mail"], "--exclude-queues can only be used with --queue '*'"),
        ):
            with self.subTest(wrong), self.assertRaisesMessage(CommandError, said):
                call_command("laneway_worker", *wrong, "--until-empty")

    def test_it_says_that_it_has_begun(self) -> None:
        logging.disable(logging.NOTSET)
        out = StringIO()
        call_command("laneway_worker", until_empty=True, worker_id="me", stderr=out)
        self.assertRegex(out.getvalue(), "worker me started: queues default; kinds django.task")


class Nothing(Case):
    """The tests above committed: nothing of theirs is here."""

    def test_nothing_is_left(self) -> None:
        self.assertEqual(queue.stats(), [])
        self.assertEqual(queue.channels(), [])
        self.assertEqual(queue.audit(), [])
        queue.channel("tenant-42").limit(concurrency=1)


class NothingEither(TestCase):  # type: ignore[misc]
    def test_nothing_is_left(self) -> None:
        result = jobs.add.enqueue(1, 2)
        self.assertEqual(jobs.add.get_result(result.id), result)

    test_and_again = test_nothing_is_left


class Checks(Case):
    def test_the_site_is_fine(self) -> None:
        for alias in ("default", "second"):
            self.assertEqual(list(task_backends[alias].check()), [])

    @override_settings(INSTALLED_APPS=[])  # type: ignore[untyped-decorator]
    def test_the_app_is_missing(self) -> None:
        (error,) = default_task_backend.check()
        self.assertIn("laneway.integrations.django", error.hint)

    @override_settings(LANEWAY={"database": "nowhere", "que": 1})  # type: ignore[untyped-decorator]
    def test_wrong_settings(self) -> None:
        found = [problem.id for problem in default_task_backend.check()]
        self.assertEqual(found, ["laneway.E002", "laneway.W002"])

    def test_wrong_priorities(self) -> None:
        for wrong in (-101, 101, 1.5, "0", True, None):
            with self.subTest(wrong), self.assertRaisesMessage(ImproperlyConfigured, "-100 to 100"):
                LanewayBackend("default", {"OPTIONS": {"lowest_priority": wrong}})


class Admin(Case):
    def setUp(self) -> None:
        super().setUp()
        self.client.force_login(User.objects.create_superuser("boss"))
        self.page = "/admin/laneway/queuedtask/"

    def act(self, action: str, *ids: str) -> str:
        answer = self.client.post(self.page, {"action": action, "id": ids}, follow=True)
        return str(answer.content)

    def test_list_retry_and_cancel(self) -> None:
        later = jobs.add.using(run_after=timezone.now() + timedelta(days=1)).enqueue(1, 2)
        failed = jobs.fail.enqueue("because <b>")
        gone = jobs.fail.enqueue("gone")
        work()
        ready = jobs.add.enqueue(3, 4)
        self.assertContains(self.client.get(self.page), "tests.django_backend.jobs.add")
        self.assertContains(self.client.get(self.page, {"state": "scheduled"}), later.id)
        page = self.client.get(self.page, {"state": "dead"})
        self.assertContains(page, "ValueError: because &lt;b&gt;")
        page = self.client.get(f"{self.page}{failed.id}/change/")
        self.assertContains(page, "Traceback (most recent call last)")
        self.assertIn("2 of 2 tasks are due now", self.act("retry", failed.id, later.id))
        failed.refresh()
        self.assertEqual(failed.status, TaskResultStatus.READY)
        self.assertIn("2 of 2 tasks are cancelled", self.act("cancel", ready.id, gone.id))
        for result in (ready, gone):
            with self.assertRaises(TaskResultDoesNotExist):
                result.refresh()
        work()
        self.assertEqual(jobs.seen, ["failed"] * 3)
        self.assertEqual({entry.actor for entry in queue.audit()}, {"boss"})

    def test_who_may_view_may_not_change(self) -> None:
        helper = User.objects.create_user("helper", is_staff=True)
        self.client.force_login(helper)
        self.assertEqual(self.client.get(self.page).status_code, 403)
        helper.user_permissions.add(Permission.objects.get(codename="view_queuedtask"))
        result = jobs.add.enqueue(1, 2)
        self.assertNotContains(self.client.get(self.page), "Cancel")
        answer = self.client.post(self.page, {"action": "cancel", "id": result.id})
        self.assertEqual(answer.status_code, 403)
        self.assertEqual(waiting(), 1)
        self.assertEqual(self.client.get(f"{self.page}999/change/").status_code, 404)
