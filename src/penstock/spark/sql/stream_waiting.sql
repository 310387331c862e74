-- How much is there to be claimed now.
select coalesce(sum(c.waiting), 0) from {schema}.channel_numbers_v1 c where c.queue = any({queues}::text[])
