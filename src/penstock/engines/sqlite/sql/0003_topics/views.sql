create view "penstock_subscription_v1" as
select topic, queue, channel, kind from "penstock_subscription";
