-- name: minutes
-- $1: span of the rows, $2: from and $3: before which minute, $4: step in minutes; $5: queue, $6: kind, null for
-- all; $7: whether queues and $8: whether kinds are kept apart. The depth is that of the step's last row, or of the
-- last one that has been noted. Sums of floating-point numbers are exact here, and twice as fast.
select (m.at div $4) * $4, case when $7 then m.queue end, case when $8 then m.kind end,
    sum(published + 0e0), sum(started + 0e0), sum(completed + 0e0), sum(retried + 0e0), sum(failed + 0e0), sum(expired + 0e0), sum(deferred + 0e0),
    sum(given_back + 0e0), sum(cancelled + 0e0), sum(lapsed + 0e0), sum(redriven + 0e0), sum(discarded + 0e0), sum(dead + 0e0), sum(w0 + 0e0),
    sum(w1 + 0e0), sum(w2 + 0e0), sum(w3 + 0e0), sum(w4 + 0e0), sum(w5 + 0e0), sum(w6 + 0e0), sum(w7 + 0e0), sum(w8 + 0e0), sum(w9 + 0e0), sum(w10 + 0e0), sum(w11 + 0e0),
    sum(w12 + 0e0), sum(r0 + 0e0), sum(r1 + 0e0), sum(r2 + 0e0), sum(r3 + 0e0), sum(r4 + 0e0), sum(r5 + 0e0), sum(r6 + 0e0), sum(r7 + 0e0), sum(r8 + 0e0), sum(r9 + 0e0),
    sum(r10 + 0e0), sum(r11 + 0e0), sum(r12 + 0e0),
    sum(case when mod(m.at + $1, $4) = 0 or m.at = f.noted div $1 * $1 then m.depth end),
    min(case when mod(m.at + $1, $4) = 0 or m.at = f.noted div $1 * $1 then m.oldest_due end), max(m.partial)
from `laneway_minute` m cross join `laneway_fold` f
where m.span = $1 and m.at >= $2 and m.at < $3 and ($5 is null or m.queue = $5) and ($6 is null or m.kind = $6)
group by 1, 2, 3
order by 1, 2, 3
