delete from {history} where id in ({ids})
