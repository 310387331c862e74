-- $1: channel ids. What is remembered for their rates.
select c.id, c.tat from json_each($1) j cross join "penstock_channel" c where c.id = j.value
