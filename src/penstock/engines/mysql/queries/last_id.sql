-- The id that this session's last insert was given.
select last_insert_id()
