insert ignore into
