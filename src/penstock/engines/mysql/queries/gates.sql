-- $1: channel ids. Those of them that refuse anything.
select id, closing, backlog from `penstock_channel` where gated = 1 and id in ($1...)
