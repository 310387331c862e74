-- Which rows the options ask for. Names of columns and views are filled in; values are parameters.
(%(queue)s is null or h.queue = %(queue)s)
    and (%(channel)s is null or h.channel = %(channel)s)
    and (%(kind)s is null or h.kind = %(kind)s)
    and (%(since)s is null or h.{time} >= %(since)s)
    and (%(until)s is null or h.{time} < %(until)s)
    and h.id > %(from_id)s and h.id <= %(to_id)s
