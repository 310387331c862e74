drop table if exists "penstock_chaos".effect
