select count(*) from {history} h where {after} and {upto}
