drop table {tables}
