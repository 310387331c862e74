-- Part of the script: the first partitions of the history.
select "penstock".partition_v1()
