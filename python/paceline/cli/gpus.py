"""CUDA devices in `paceline doctor`."""

from paceline import _core, topology
from paceline.errors import Error


def finding():
    """(state, text, advice)."""
    trouble = _core.trouble_with_cuda()
    emulated = "paceline.device.emulated() makes devices for programs and tests without a GPU"
    if trouble:
        return "ok", f"none: {trouble}", f"Tensors are on the CPU; {emulated}." \
            if "version" in trouble else ""
    try:
        found = _core.cuda_devices()
        about = [found.describe(one) for one in range(found.count)]
        kernels = _core.has_cuda_kernels()
    except Error as error:
        return "warn", str(error), f"Collectives on devices do not work; {emulated}."
    names = {}
    for one in about:
        key = f"{one['name']} ({one['architecture']}, {_core.human_bytes(one['memory_bytes'])})"
        names[key] = names.get(key, 0) + 1
    text = ", ".join(f"{count} x {name}" for name, count in names.items())
    text += f", driver {about[0]['driver']}"
    apart = [(a, b) for a in range(found.count) for b in range(found.count)
             if a < b and not (found.reaches(a, b) and found.reaches(b, a))]
    if found.count > 1:
        order = topology.near_order(found)
        text += f"; neighbours in the order {' '.join(map(str, order))}"
        slow = [(a, b) for a, b in zip(order, order[1:], strict=False) if found.link(a, b) > 0]
        if slow:
            text += ", by slower links between " + ", ".join(f"{a} and {b}" for a, b in slow[:4])
        text += "; all reach each other" if not apart else ""
    advice = []
    if not kernels:
        advice.append("There are no reduce kernels: broadcasts work, sums do not. Build with nvcc "
                      "on the PATH, or set PACELINE_CUDA_KERNELS.")
    if apart:
        pairs = ", ".join(f"{a} and {b}" for a, b in apart[:4])
        advice.append(f"Devices {pairs} do not reach each other: only algorithms that send serve "
                      "them, and the driver copies through the host.")
    return ("warn" if advice else "ok"), text, " ".join(advice)
