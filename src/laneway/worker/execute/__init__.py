"""Running handlers: in the event loop, in threads and in processes."""
