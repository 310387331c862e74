"""Publishing: append messages, reserve their keys, refuse what a channel does not take."""
