-- What happened by minute, for people and dashboards; laneway.operations.Minute says what the columns mean.
create view "laneway".minute_v1 as
select m.at, m.queue, m.kind, m.published, m.started, m.completed, m.retried, m.failed, m.expired, m.deferred,
    m.given_back, m.cancelled, m.lapsed, m.redriven, m.discarded, m.dead, m.waits, m.runs, m.depth, m.oldest, m.exact
from "laneway".minute m where m.span = 1 and m.queue <> '';
