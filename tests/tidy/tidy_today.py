"""Today's exceptions to rules. Lists only get shorter: an entry in order is a finding."""

# Includes inside a room that run in a circle: file.cpp and file.hpp are one unit.
UNITS_IN_CIRCLES = {
    "python/binding": "arguments buffers on_device",
    "src/device": "cuda/cuda cuda/current",
    "src/ir": "algorithm bind compose",
    "src/kernels": "kernels table",
    "src/preload": "comm_state join narrow stub summary",
    "src/transport":
        "mpi/abi/make mpi/library mpi/mpi_transport mpi/transport shm/inbox shm/peer "
        "shm/provision shm/shm shm/staging shm/status",
    "src/verify": "form hazards load_store match memory run staging verify",
}

# Types that several files of src define.
TYPES_TWICE = """
Asked Block Boolean Buffers Descriptor Driver Early Event Graph Half Kind Last
Loaded Max Memory Min Order Part Peer Place Plain Pool Product Ring Row Space Store
Sum Tail Terms Transfer Use What Work
""".split()
