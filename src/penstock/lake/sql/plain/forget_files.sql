delete from {lake_file} where lake = {lake} and path in ({paths})
