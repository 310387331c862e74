"""What becomes known of messages while they run and when they end."""
