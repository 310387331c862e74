-- Channels that were removed and have drained.
delete from "penstock_channel" where closing and waiting = 0 and leased = 0 returning 1
