-- $1: message ids, of which none waits.
select m.id, 'leased' from json_each($1) j cross join "penstock_message" m where m.id = j.value
union all
select d.id, 'dead' from json_each($1) j cross join "penstock_dead" d where d.id = j.value
