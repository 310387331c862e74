-- $1: key ids. Reads, and locks nothing: an open producer that met a live key blocks no completion.
select id, message_id, expires_at,
    /*M! @@session.tx_isolation */ /*!80000 @@session.transaction_isolation */
from `penstock_dedupe` where id in ($1...)
