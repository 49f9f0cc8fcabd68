"""The examples that every command's help shows: there are some, and the command takes them."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from paceline.cli import cli, commands


def command_of(name):
    """The click command of a name, such as "report ring"."""
    found = cli
    for word in name.split():
        found = found.get_command(None, word)
    return found


def below():
    """The names of all commands, and of those of groups."""
    for name in commands():
        yield name
        yield from (f"{name} {each}" for each in getattr(command_of(name), "commands", ()))


def examples(name):
    """The arguments of the command lines that a command's help shows."""
    found = []
    for line in command_of(name).help.replace("\\\n", " ").splitlines():
        match = re.match(r"\s*(?P<before>(?:\w+=)?\S*?)\s*paceline (?P<words>.*)$", line)
        if not match or not match["words"].startswith(name):
            continue
        end = ")" if match["before"].endswith("$(") else " | "
        found.append(shlex.split(match["words"].split(end)[0])[len(name.split()):])
    return found


def take(name, arguments):
    """Parses them as the command would; raises click.UsageError where it would refuse."""
    command = command_of(name)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        command, arguments = command.get_command(None, arguments[0]), arguments[1:]
    command.make_context(name, list(arguments))


@pytest.mark.parametrize("name", list(below()))
def test_every_command_shows_examples_that_it_takes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ring-mpich5.json").touch()   # in an example; the command wants it to be there
    assert examples(name), f"paceline {name} --help has no example"
    for arguments in examples(name):
        take(name, arguments)


@pytest.mark.parametrize("name", ["", *below()])
def test_help_fits_into_a_terminal(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = CliRunner().invoke(cli, [*name.split(), "--help"]).output
    assert "Usage:" in text and max(map(len, text.splitlines())) <= 80
    listed = text.partition("Commands:")[2]
    assert "..." not in listed, "a line of the list is cut"


def test_examples_are_found_in_all_their_forms():
    assert ["-n", "4", "train.py", "--epochs", "3"] in examples("run")
    assert ["-c", "import paceline; print(paceline.init())"] == examples("run")[1][-2:]
    assert examples("preload") == [["--mpicc", "mpicc.mpich"], []]
    assert examples("options") == [[], []], "the second one's pipe is the shell's"


def test_an_example_that_a_command_refuses_is_found():
    with pytest.raises(click.UsageError, match="No such option"):
        take("explain", ["--rank-count", "16"])
    with pytest.raises(click.UsageError):
        take("draw", ["allreduce", "--ranks", "many"])
