-- Everything that install made, and what is in it.
drop schema "penstock" cascade
