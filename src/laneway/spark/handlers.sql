-- name: take
select t.* from "laneway".take_stream_v1($ids::bigint[], $fences::bigint[]) t
