-- $1: message ids. What decides their fate.
select m.id, m.priority, m.due, m.spent, m.max_attempts
from json_each($1) j cross join "penstock_message" m where m.id = j.value
