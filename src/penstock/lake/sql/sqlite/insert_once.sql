insert or ignore into
