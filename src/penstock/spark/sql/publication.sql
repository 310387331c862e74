-- Whether this was published before. Asked once more when it matters; here it saves the work.
select exists (select from {schema}.publication p where p.source = {source} and p.batch = {batch})
