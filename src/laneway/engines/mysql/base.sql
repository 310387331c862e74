-- name: max_allowed_packet
-- The largest statement that the server accepts, in bytes.
select @@max_allowed_packet
