select u.ran from {schema}.upkeep_v1() u
