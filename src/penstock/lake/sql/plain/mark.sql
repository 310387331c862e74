update {lake_commit} set state = {state} where lake = {lake} and batch = {batch} and state = {before}
