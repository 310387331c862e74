select id from penstock_chaos_channel for update
