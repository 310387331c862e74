select count(*) from {history} h where h.ended_at >= {begins} and h.ended_at < {ends}
