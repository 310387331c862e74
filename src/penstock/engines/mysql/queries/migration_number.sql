select max(number) from `penstock_migration`
