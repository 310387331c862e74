update {lake_file} set staged = null, replaces = null where lake = {lake} and path = {path}
