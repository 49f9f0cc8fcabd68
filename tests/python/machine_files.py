"""Machine files, as starts write them (src/machine/machine_file.hpp)."""


def sealed(text):
    """A whole file of these lines."""
    hashed = 0xCBF29CE484222325
    for byte in text.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return f"{text}end {hashed:016x}\n"


def set_samples(path, sample):
    """Later starts compare their sample with this one (s per byte); 0: with nothing, as a test that
    is not about it wants where others use the machine."""
    lines = []
    for line in path.read_text().splitlines()[:-1]:
        words = line.split(" ")
        lines.append(" ".join([*words[:5], sample, *words[6:]]) if len(words) > 5 else line)
    path.write_text(sealed("".join(f"{line}\n" for line in lines)))
