-- Part of the script; $1 and $2 are replaced by literals.
insert into "penstock_migration" (number, name) values ($1, $2)
