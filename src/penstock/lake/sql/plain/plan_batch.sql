-- Two syncs at once plan the same batch; the first one's range holds.
{insert_once} {lake_commit} (lake, batch, from_xid, from_id, to_xid, to_id, `rows`, checksum, first_ended_at, last_ended_at, state, planned_at)
values ({lake}, {batch}, {from_xid}, {from_id}, {to_xid}, {to_id}, {rows}, {checksum}, {first_ended_at}, {last_ended_at}, 'planned', {planned_at})
