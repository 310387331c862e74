delete from {schema}.staged s where s.name = any({names}::text[])
