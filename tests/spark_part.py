"""Which tests of Spark and the lake `make test` runs: the plainest of most verbs. They share one
session, in one process, so all of them would take longer than everything else together; the others
are in `make test-rest`."""

IN_MAKE_TEST = frozenset(
    {
        "tests/spark/test_publishing.py::test_a_frame_is_published_as_the_client_would",
        "tests/spark/test_publishing.py::test_a_failing_task_publishes_nothing",
        "tests/spark/test_publishing.py::test_what_is_published_can_be_claimed",
        "tests/spark/test_publishing.py::test_the_same_key_twice_publishes_once",
        "tests/spark/test_reading.py::test_history_is_read_once_in_partitions_of_equal_size",
        "tests/spark/test_reading.py::test_messages_and_dead_letters",
        "tests/spark/test_reading.py::test_wrong_options_are_refused_by_name",
        "tests/spark/test_claim_stream.py::test_a_crash_before_the_sinks_commit_replays_the_same_batch",
        "tests/spark/test_handlers.py::test_each_outcome",
        "tests/lake/test_sync.py::test_all_rows_and_columns_arrive_once",
        "tests/lake/test_sync.py::test_sync_verify_purge_leave_what_is_young",
        "tests/lake/test_plain.py::test_all_rows_and_columns_arrive_once_and_old_ones_are_purged",
        "tests/lake/test_report.py::test_time_in_a_workers_own_queue_is_waiting",
        "tests/lake/test_streams.py::test_purge_and_retention_wait_until_it_has_read",
        "tests/lake/test_erase.py::test_one_tenant_is_gone_and_all_others_are_whole",
        "tests/lake/test_synth.py::test_every_message_ends_once_or_is_alive",
    }
)
