create view "laneway".subscription_v1 as
select s.topic, s.queue, s.channel, s.kind from "laneway".subscription s;
