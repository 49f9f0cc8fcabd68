"""How long collectives take: ranks are started, variants run in turn, times are judged."""
