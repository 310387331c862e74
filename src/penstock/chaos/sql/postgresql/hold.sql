-- Writers wait for this until it is let go.
lock table "penstock_chaos".lease in exclusive mode
