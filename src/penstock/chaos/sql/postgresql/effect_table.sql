create table "penstock_chaos".effect (n text not null)
