select h.id from {history} h
where h.id > {seen} and h.ended_at >= {begins} and h.ended_at < {ends} and {upto}
order by h.id limit {limit}
