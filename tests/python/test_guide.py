"""docs/guide: its programs run, its commands and variables exist, its messages are in the code. A
block of Python or C is a program if its first line is its name, `# train.py` or `// sum.c`."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from launched import start

from paceline import _core
from paceline.cli import cli

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/guide/*.md")}
COMMAND = re.compile(r"\bpaceline (?=([a-z][^\n|#&;)]*))")


def blocks(language):
    """(page, block) of every fenced block of a language."""
    return [(name, block) for name, page in sorted(PAGES.items())
            for block in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)]


PROGRAMS = {f"{page}-{block[2:].split()[0]}": block for page, block in blocks("python")
            if re.match(r"# \w+\.py\n", block)}


def run(folder, text):
    (folder / "program.py").write_text(text, encoding="utf-8")
    return start(folder / "program.py", 2)


def compiled(block):
    """The messages of a C compiler for a program, which is not linked."""
    words = "cc -std=c11 -Wall -Wextra -Werror -pedantic -fsyntax-only -x c -".split()
    done = subprocess.run([*words, f"-I{ROOT / 'include'}"], input=block, capture_output=True,
                          text=True, timeout=60)
    return done.stderr


def take(block):  # as the command would
    for match in COMMAND.finditer(block):
        name, *words = shlex.split(match[1])
        cli.get_command(None, name).make_context(name, words)


def in_code(message, code):
    """True if the message is there but for its `...`; a piece may be put together from two."""
    pieces = [piece.strip() for piece in message.split("...") if len(piece.strip()) > 3]
    return all(any(piece[:cut.start()] in code and piece[cut.end():] in code
                   for cut in re.finditer(r"^| ", piece)) for piece in pieces)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name, tmp_path):
    if "torch" in PROGRAMS[name]:
        pytest.importorskip("torch")
    done = run(tmp_path, PROGRAMS[name])
    assert done.status == 0, done.text()


def test_commands_and_variables_exist():
    for _, block in blocks("sh"):
        take(block)
    named = set(re.findall(r"(?<!-D)PACELINE_[A-Z_]+", "".join(PAGES.values())))
    header = (ROOT / "include/paceline/paceline.h").read_text(encoding="utf-8")
    named -= set(re.findall(r"\bPACELINE_[A-Z_]+", header))
    assert named <= {row["variable"] for row in _core.options()} | {"PACELINE_LONG"}


def test_quotations_are_in_the_code():
    code = "".join(path.read_text(encoding="utf-8") for path in
                   (*ROOT.glob("src/**/*.?pp"), *ROOT.glob("python/**/*.py")))
    assert all(block in code for _, block in blocks("cpp"))
    joined = re.sub(r"[\"']\s*,?\s*f?[\"']", "", code.replace('\\"', '"'))
    messages = re.findall(r"^\| `(.*?)` \|", PAGES["when-it-hangs.md"], re.M)
    assert messages and [text for text in messages if not in_code(text, joined)] == []
    assert not in_code("... has wafted ... s; ... has last left ...", joined)


def test_c_programs_compile_and_others_are_examples():
    if not shutil.which("cc"):
        pytest.skip("PATH has no C compiler")
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("examples/c/*.c"))
    programs = [block for _, block in blocks("c") if re.match(r"// \w+\.c\n", block)]
    others = [block for _, block in blocks("c") if block not in programs]
    assert programs and [compiled(block) for block in programs] == [""] * len(programs)
    assert others and all(block in code for block in others)
    assert "paceline_sums" in compiled(programs[0].replace("paceline_allreduce", "paceline_sums"))


def test_what_is_wrong_is_found(tmp_path):
    assert run(tmp_path, "# broken.py\nimport paceline.nothing\n").status == 1
    for wrong in ("A=b paceline run -n 2 --nothing 1 x.py  # text", "$(paceline nothing) x"):
        with pytest.raises(click.UsageError, match="nothing"):
            take(wrong)
