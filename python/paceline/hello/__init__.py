"""Measures and draws for `paceline hello`; step and sizes are programs of ranks."""

ALONE, OVERLAP, GLOO = "computing alone", "overlap()", "DDP over gloo"
