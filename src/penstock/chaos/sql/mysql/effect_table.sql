create table penstock_chaos_effect (n varchar(100) not null)
