-- Answers the number of this claim.
insert into `penstock_fence` () values ()
