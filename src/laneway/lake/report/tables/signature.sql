-- View: the signature of a failure, the same for the same defect: the type of the error, the innermost frame of
-- the user's own code if the text is a traceback, and the last line with numbers and ids masked.
with told as (
    select a.*,
        coalesce(a.error_type, case when a.outcome = 'expired' then 'LeaseExpired' else a.reason end, 'unknown') as type,
        coalesce(a.error, case when a.outcome = 'expired' then 'the lease ran out' end, '') as said
    from attempt a
    where a.failing
),
seen as (
    select t.*,
        try_element_at(filter(
            regexp_extract_all(t.said, r'File "[^"]+", line \d+, in \S+', 0),
            line -> not line rlike r'site-packages|/lib/python|/laneway/'), -1) as own,
        regexp_extract(t.said, r'([^\n]*\S)\s*$', 1) as last_line
    from told t
)
select s.*,
    concat_ws(' in ',
        regexp_extract(s.own, r'([^/"]+)", line', 1), regexp_extract(s.own, r', in (\S+)', 1)) as frame,
    left(regexp_replace(regexp_replace(regexp_replace(s.last_line,
        r'[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', '<id>'),
        r'0x[0-9a-fA-F]+', '<address>'),
        r'[0-9]+', '#'), 200) as text
from seen s
