-- Each failure with its signature.
with said as (
    select f.*, coalesce(f.error_type, case f.outcome when 'expired' then 'LeaseExpired' else f.reason end, 'unknown') as type,
        coalesce(f.error, case f.outcome when 'expired' then 'the lease ran out' end, '') as said
    from fact f where f.failing
)
select s.*,
    coalesce((select substring(m.found[1] from '([^/"]+)", line') || ' in ' || substring(m.found[1] from ', in (\S+)$')
        from regexp_matches(s.said, '(File "[^"]+", line \d+, in \S+)', 'g') with ordinality m (found, n)
        where m.found[1] !~ '(site-packages|/lib/python|/laneway/)' order by m.n desc limit 1), '') as frame,
    coalesce((select left(regexp_replace(regexp_replace(regexp_replace(rtrim(l.line),
            '[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}', '<id>', 'g'),
            '0x[[:xdigit:]]+', '<address>', 'g'), '\d+', '#', 'g'), 200)
        from regexp_split_to_table(s.said, '\n') with ordinality l (line, n)
        where l.line ~ '\S' order by l.n desc limit 1), '') as text
from said s
