update {schema}.lake_commit c set state = 'planned'
where c.lake = {lake} and c.batch = any({batches}::bigint[]) and c.state in ('written', 'verified')
