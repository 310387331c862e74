-- The sequences themselves: no table is read.
select m.last_value - CAST(not m.is_called AS integer) as published,
    h.last_value - CAST(not h.is_called AS integer) as ended
from "penstock".message_id m, "penstock".history_id h
