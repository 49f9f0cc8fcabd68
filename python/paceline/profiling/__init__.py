"""Profiles of collectives: the times at which ranks enter and leave each call, on one clock.

    with paceline.profile("here") as p:
        ...
    print(p.report())

`recording` records; `files` reads the files of the ranks; `calls` matches their clocks and calls;
`summary` computes figures and tables; `terminal`, `page`, `pictures` and `perfetto` show them.
"""

from paceline.profiling.recording import Recording, profile

__all__ = ["Recording", "profile"]
