"""Steady load with bursts for a long time: what must stay flat, and nothing lost. `make soak`."""
