select name from sqlite_master where type = 'table' and substr(name, 1, length(%(start)s)) = %(start)s
