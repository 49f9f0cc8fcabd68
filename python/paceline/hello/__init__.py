"""Measures and draws for `paceline hello`; step and sizes are programs of ranks."""

STEP_ROUNDS, STEPS = 9, 4  # a round has fewer steps where they would take too long
SIZE_ROUNDS = 5
ALONE, OVERLAP, GLOO = "computing alone", "overlap()", "DDP over gloo"
