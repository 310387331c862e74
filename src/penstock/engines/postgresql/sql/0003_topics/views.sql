create view "penstock".subscription_v1 as
select s.topic, s.queue, s.channel, s.kind from "penstock".subscription s;
