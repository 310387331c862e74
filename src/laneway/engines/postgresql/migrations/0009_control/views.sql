-- Queues and kinds that are paused now.
create view "laneway".pause_v1 as
select p.queue, p.kind, p.until, p.since, p.actor, p.reason
from "laneway".pause p
where p.until is null or p.until > clock_timestamp();
