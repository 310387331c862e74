"""flows: messages that wait for others, and what releases them."""
