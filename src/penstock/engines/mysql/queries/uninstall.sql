-- Everything that install made, and what is in it.
drop view if exists `penstock_lake_sure`, `penstock_subscription_v1`, `penstock_schedule_v1`, `penstock_queue_numbers_v1`, `penstock_channel_numbers_v1`, `penstock_numbers`,
    `penstock_channel_v1`, `penstock_history_v1`, `penstock_dead_letter_v1`, `penstock_message_v1`;
drop table if exists `penstock_lake_file`, `penstock_lake_commit`, `penstock_mail`, `penstock_listener`, `penstock_done`, `penstock_subscription`, `penstock_schedule`, `penstock_history`, `penstock_dead_count`, `penstock_dead`, `penstock_dedupe`,
    `penstock_stray`, `penstock_lease`, `penstock_wake`, `penstock_expiry`, `penstock_message`,
    `penstock_channel`, `penstock_fence`, `penstock_turnstile`, `penstock_setting`, `penstock_migration`
