"""`_set_pg_timeout()` for Paceline's groups: torch serves only the classes of gloo and NCCL."""

import functools
import sys
import warnings
from datetime import timedelta
from typing import Any

from torch.distributed import distributed_c10d as c10d


def install() -> None:
    """Extends it to Paceline's groups, also in place of another backend. Does not load the core."""
    usual = c10d._set_pg_timeout

    @functools.wraps(usual)
    def set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
        part = _ours(c10d._get_default_group() if group is None else group)
        if part is None:
            return usual(timeout, group)
        with warnings.catch_warnings():  # what else the group has is torch's; or it has nothing
            warnings.filterwarnings("ignore", message="Set timeout is now only supported")
            usual(timeout, group)
        part.set_timeout(timeout)

    c10d._set_pg_timeout = set_pg_timeout


def _ours(group: Any) -> Any:
    if "paceline.torch.group" not in sys.modules or not isinstance(group, c10d.ProcessGroup):
        return None
    from paceline.torch.group import PacelineGroup
    from paceline.torch.minors import part_of

    part = part_of(group)
    return part if isinstance(part, PacelineGroup) else None
