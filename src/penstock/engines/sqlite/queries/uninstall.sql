-- Everything that install made, and what is in it.
drop view "penstock_queue_numbers_v1";
drop view "penstock_channel_numbers_v1";
drop view "penstock_channel_v1";
drop view "penstock_history_v1";
drop view "penstock_dead_letter_v1";
drop view "penstock_message_v1";
drop table "penstock_history";
drop table "penstock_dead_count";
drop table "penstock_dead";
drop table "penstock_dedupe";
drop table "penstock_lease";
drop table "penstock_claim";
drop table "penstock_waiting";
drop table "penstock_message";
drop table "penstock_channel";
drop table "penstock_state";
drop table "penstock_migration";
