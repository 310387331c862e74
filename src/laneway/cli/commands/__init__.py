"""The commands, one module per noun."""
