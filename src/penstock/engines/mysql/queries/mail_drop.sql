-- $1: numbers.
delete t from $1:ids x straight_join `penstock_mail` t force index (primary) on t.number = x.id
