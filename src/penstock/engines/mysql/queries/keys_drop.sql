-- $1: key ids, in their order.
delete from `penstock_dedupe` where id in ($1...)
