select coalesce(max(number), 0) from "penstock_migration"
