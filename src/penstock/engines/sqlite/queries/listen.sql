-- $1..$4: the columns of EventFilter as JSON, null for all; $5: until.
insert into "penstock_listener" (until, read_to, what, queues, channels, kinds)
values ($5, (select coalesce(max(number), 0) from "penstock_mail"), $1, $2, $3, $4)
returning id
