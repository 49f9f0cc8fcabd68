"""Profiles of collectives: times at which ranks enter and leave each call, on one clock.

    with paceline.profile("here") as p:
        ...
    print(p.report())

`recording` records; `files` reads what ranks have written; `calls` brings their clocks and calls
together; `summary` computes the figures and tables; `terminal`, `page`, `pictures` and `perfetto`
show them.
"""

from paceline.profiling.recording import Recording, profile

__all__ = ["Recording", "profile"]
