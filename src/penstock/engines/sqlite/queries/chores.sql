-- $1: now. Whether each chore has anything to do.
select
    exists (select 1 from "penstock_claim" where until <= $1) as expire,
    exists (select 1 from "penstock_waiting" where expires_at <= $1) as lapse,
    exists (select 1 from "penstock_dedupe" where expires_at <= $1) as keys,
    exists (select 1 from "penstock_channel" where closing and waiting = 0 and leased = 0) as closing,
    exists (select 1 from "penstock_listener" where until <= $1) as mail,
    (select ended_at < $1 - history_days * 86400000000 - $1 % 86400000000
            and id <= coalesce((select s.id from "penstock_lake_sure" s), id)
        from "penstock_history", "penstock_state" order by id limit 1) as history
