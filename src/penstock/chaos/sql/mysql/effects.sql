select n from penstock_chaos_effect
