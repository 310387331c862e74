create table penstock_chaos_effect (n text not null)
