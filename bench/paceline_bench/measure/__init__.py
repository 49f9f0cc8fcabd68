"""Times collectives: ranks are started, variants run in turn, times are judged."""
