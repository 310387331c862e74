set session transaction isolation level read committed
