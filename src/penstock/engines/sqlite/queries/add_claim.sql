-- $1: fence, $2: until, $3: now, $4: worker.
insert into "penstock_claim" (fence, until, claimed_at, worker) values ($1, $2, $3, $4)
