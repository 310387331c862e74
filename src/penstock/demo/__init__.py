"""`make demo`: the queue at work on a throwaway server, told step by step, with a verdict."""
