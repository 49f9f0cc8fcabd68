"""Reports: what was published about pipelining and rings, again, simulated and measured."""
