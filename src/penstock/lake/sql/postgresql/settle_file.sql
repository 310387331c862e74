update {schema}.lake_file f set staged = null, replaces = null where f.lake = {lake} and f.path = {path}
