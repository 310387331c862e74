"""Tests of the two suites that cannot apply to Laneway, by reason. A test is named by its class and
method, or by its class alone."""

DJANGO: dict[str, tuple[str, ...]] = {
    "it changes the result inside of the dummy backend's memory": (
        "DummyBackendTestCase.test_refresh_result",
        "DummyBackendTestCase.test_refresh_result_async",
    ),
    "the immediate backend runs the task in the caller's thread and transaction, Laneway never": (
        "ImmediateBackendTestCase.test_throws_keyboard_interrupt",
        "ImmediateBackendTransactionTestCase",
    ),
    "the immediate backend has no results and no run_after, Laneway has both": (
        "ImmediateBackendTestCase.test_cannot_get_result",
        "ImmediateBackendTestCase.test_cannot_refresh_result",
        "ImmediateBackendTestCase.test_cannot_pass_run_after",
    ),
}

TASKS_DB: dict[str, tuple[str, ...]] = {
    "the id of a result is the message's number, not a UUID": (
        "DatabaseBackendTestCase.test_enqueue_task",
        "DatabaseBackendTestCase.test_enqueue_task_async",
        "DatabaseBackendTestCase.test_custom_id_function",
        "DatabaseBackendTestCase.test_unknown_id_function",
        "DatabaseBackendTestCase.test_postgres_db_id_function",
        "DatabaseBackendTestCase.test_postgres_id_function_expression",
    ),
    "it reads or writes the rows, indexes or locks of django-tasks-db's own table": (
        "DatabaseBackendTestCase.test_refresh_result",
        "DatabaseBackendTestCase.test_refresh_result_async",
        "DatabaseBackendTestCase.test_invalid_task_path",
        "DatabaseBackendTestCase.test_missing_task_path",
        "DatabaseBackendTestCase.test_task_name",
        "DatabaseBackendTestCase.test_priority_range_check",
        "DatabaseBackendTestCase.test_index_scan_for_ready",
        "DatabaseBackendTestCase.test_run_after_null_0016_migration",
        "DatabaseBackendTestCase.test_doesnt_wait_until_transaction_commit",
        "DatabaseBackendWorkerTestCase.test_worker_with_locked_rows",
        "DatabaseBackendWorkerTestCase.test_run_after_priority",
        "DatabaseTaskResultTestCase",
        "DBTaskResultOrderingTestCase",
        "ConnectionExclusiveTranscationTestCase",
        "AdminTestCase",
    ),
    "it expects django-tasks-db's name in a text": (
        "DatabaseBackendTestCase.test_database_backend_app_missing",
        "DatabaseBackendWorkerTestCase.test_incorrect_backend",
        "DatabaseBackendWorkerTestCase.test_exclude_queues_requires_processing_all_queues",
        "DatabaseBackendWorkerTestCase.test_verbose_logging",
        "DatabaseBackendWorkerTestCase.test_max_tasks",
        "DatabaseWorkerProcessTestCase.test_multiple_workers",
    ),
    "Laneway's worker is told of new tasks and has no interval to wait": (
        "DatabaseBackendWorkerTestCase.test_negative_interval",
        "DatabaseBackendWorkerTestCase.test_infinite_interval",
        "DatabaseBackendWorkerTestCase.test_fractional_interval",
        "DatabaseBackendWorkerTestCase.test_zero_interval",
    ),
    "a worker for a backend that is not Laneway's is refused": (
        "DatabaseBackendWorkerTestCase.test_doesnt_process_different_backend",
    ),
    "results end by themselves after keep_result": ("DatabaseBackendPruneTaskResultsTestCase",),
    "it wants a task of two seconds to run one second after its process was started": (
        "DatabaseWorkerProcessTestCase.test_interrupt_signals",
    ),
    "a task that a second Ctrl-C stops has not failed here: another worker runs it": (
        "DatabaseWorkerProcessTestCase.test_repeat_ctrl_c",
    ),
}
