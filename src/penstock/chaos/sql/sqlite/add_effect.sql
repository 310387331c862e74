insert into penstock_chaos_effect (n) values ($1)
