set local timezone = 'UTC'; set local datestyle = 'ISO'; set local bytea_output = 'hex'
