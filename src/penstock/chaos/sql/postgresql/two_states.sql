-- One snapshot: dead letters that wait too, messages that have ended and are there, leases of nothing.
select d.id, 'is dead and waits' from "penstock_chaos".dead d join "penstock_chaos".message m on m.id = d.id
union all
select h.message_id, 'has ended and is there' from "penstock_chaos".history h
where h.terminal and (exists (select from "penstock_chaos".message m where m.id = h.message_id)
    or exists (select from "penstock_chaos".dead d where d.id = h.message_id))
union all
select l.message_id, 'is leased and is not there' from "penstock_chaos".lease l
where not exists (select from "penstock_chaos".message m where m.id = l.message_id)
