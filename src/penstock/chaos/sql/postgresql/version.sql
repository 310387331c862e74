select 'PostgreSQL ' || current_setting('server_version')
