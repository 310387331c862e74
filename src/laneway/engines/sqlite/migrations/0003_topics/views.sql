create view "laneway_subscription_v1" as
select topic, queue, channel, kind from "laneway_subscription";
