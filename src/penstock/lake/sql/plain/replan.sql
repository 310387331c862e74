update {lake_commit} set state = 'planned'
where lake = {lake} and batch in ({batches}) and state in ('written', 'verified')
