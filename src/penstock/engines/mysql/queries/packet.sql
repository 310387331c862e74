-- How much the server takes in one statement.
select @@max_allowed_packet
