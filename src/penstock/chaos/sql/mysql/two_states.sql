-- One snapshot: dead letters that wait too, messages that have ended and are there.
select d.id, 'is dead and waits' from penstock_chaos_dead_letter_v1 d join penstock_chaos_message_v1 m on m.id = d.id
union all
select h.message_id, 'has ended and is there' from penstock_chaos_history_v1 h
where h.terminal and (exists (select 1 from penstock_chaos_message_v1 m where m.id = h.message_id)
    or exists (select 1 from penstock_chaos_dead_letter_v1 d where d.id = h.message_id))
