-- $1: listener, $2: now. One row: alive, behind, and whether there is mail.
select
    exists (select 1 from "penstock_listener" where id = $1 and until > $2),
    (select max(number) from "penstock_mail") - (select read_to from "penstock_listener" where id = $1),
    exists (select 1 from "penstock_mail" where listener_id = $1)
