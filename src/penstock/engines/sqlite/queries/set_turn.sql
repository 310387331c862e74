-- $1: the last turn that was given out.
update "penstock_state" set turn = $1
