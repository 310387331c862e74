-- $1: channel.
select concurrency, rate, burst, backlog, weight, paused, closing from `penstock_channel` where id = $1
