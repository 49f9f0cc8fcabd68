"""Profiles of collectives: who enters and leaves which call when, on one clock.

    with paceline.profile("here") as p:
        ...
    print(p.report())

`recording` records; `files` reads what ranks have written; `calls` brings their clocks and calls
together; `summary` says what there is to see in them; `terminal`, `page`, `pictures` and `perfetto`
show it.
"""

from paceline.profiling.recording import Recording, profile

__all__ = ["Recording", "profile"]
