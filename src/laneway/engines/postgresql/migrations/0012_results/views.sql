-- What the holders of leased messages said last about how far they are.
create or replace view "laneway".progress_v1 as
select p.message_id, p.fence, p.at, p.share, p.note
from "laneway".progress p join "laneway".lease l on l.message_id = p.message_id and l.fence = p.fence;
