insert into "penstock_chaos".effect (n) values ($1)
