drop table if exists penstock_chaos_effect
