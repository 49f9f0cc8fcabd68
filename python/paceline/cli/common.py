"""Shared parts of commands: the console, kinds of arguments, options from the table."""

import json
import os
import re
from pathlib import Path

import click
from rich.console import Console

from paceline import _core

PIPE_COLUMNS = 100  # width if the output is no terminal
COLLECTIVES = "COLLECTIVE is one of " + ", ".join(_core.collectives()) + "."


def console():
    """A console as wide as the terminal."""
    made = Console(highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPE_COLUMNS
    return made


def kept_figures(file):
    """Describes the machine file's figures (_core.machine_file()) for choices between nodes."""
    machines = file["machines"]
    if not machines:
        return f"the first start measures the links, and keeps the figures in {file['path']}"
    last = machines[0]
    number = f"{len(machines)} layout{'s' if len(machines) > 1 else ''}"
    return (f"measured figures are kept in {file['path']}: {number}, the last of "
            f"{last['ranks']} ranks on {last['nodes']} nodes on {last['day']}: "
            f"{_core.machine(last['settings'])}")


class Size(click.ParamType):
    """Bytes, with or without a unit."""

    name = "size"

    def convert(self, value, parameter, context):
        """64KiB -> 65536."""
        if isinstance(value, int):
            return value
        try:
            return _core.parse_bytes(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


class Sizes(click.ParamType):
    """A list of sizes and ranges: 8,1KiB or 8..64MiB or 1KiB..1MiB*4."""

    name = "sizes"

    def convert(self, value, parameter, context):
        """The sizes, in the order given."""
        if not isinstance(value, str):
            return value
        sizes = []
        for part in value.split(","):
            found = re.fullmatch(r"([^.*]+)\.\.([^.*]+)(?:\*(\d+))?", part.strip())
            try:
                if not found:
                    sizes.append(_core.parse_bytes(part.strip()))
                    continue
                first, last = (_core.parse_bytes(end) for end in found.groups()[:2])
            except ValueError as error:
                self.fail(str(error), parameter, context)
            sizes += self.between(first, last, int(found.group(3) or 2), parameter, context)
        return sizes

    def between(self, first, last, factor, parameter, context):
        """first, first * factor, ... up to and with last."""
        if not 1 <= first <= last or factor < 2:
            self.fail(
                "a range goes from a smaller size to a larger one, from 1 byte on: 8..64MiB "
                "doubles the size each time, 8..64MiB*4 multiplies it by 4.", parameter, context,
            )
        sizes = []
        while first < last:
            sizes.append(first)
            first *= factor
        return [*sizes, last]


class Names(click.ParamType):
    """A comma-separated list of words."""

    name = "names"

    def convert(self, value, parameter, context):
        """a,b -> ["a", "b"]."""
        return value.split(",") if isinstance(value, str) else value


class Ranks(click.ParamType):
    """A list of ranks: 2,5."""

    name = "ranks"

    def convert(self, value, parameter, context):
        """2,5 -> [2, 5]."""
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",")]
        if not all(part.isdecimal() for part in parts):
            self.fail(f"'{value}' is no list of ranks; write 5, or 2,5.", parameter, context)
        return [int(part) for part in parts]


class Collective(click.Choice):
    """One of the nine collectives."""

    def __init__(self):
        super().__init__(_core.collectives())

    def get_metavar(self, param, ctx=None):
        """A word: the list would be longer than the rest of the line."""
        return "COLLECTIVE"

    def get_invalid_choice_message(self, value, ctx=None):
        """The list, and the name that was probably meant."""
        near = _core.did_you_mean(value, ", ".join(self.choices))
        return super().get_invalid_choice_message(value, ctx) + near


class Number(click.IntRange):
    """A whole number between limits."""

    def get_metavar(self, param, ctx=None):
        """The shortest metavar."""
        return "N"


class Segments(click.ParamType):
    """A number of segments, or the size of one: 8, 4MiB."""

    name = "N|SIZE"

    def convert(self, value, parameter, context):
        """8 -> 8; the core reads and checks a size."""
        if isinstance(value, int) or value.isdigit():
            return Number(0, 4096).convert(value, parameter, context)
        return value


class Numbers(Number):
    """A list of whole numbers between limits, each once."""

    def convert(self, value, parameter, context):
        if not isinstance(value, str):
            return value
        parts = [super(Numbers, self).convert(part.strip(), parameter, context)
                 for part in value.split(",")]
        return list(dict.fromkeys(parts))

    def get_metavar(self, param, ctx=None):
        return "N[,N...]"


def checked_file(context, parameter, value):
    """Checks that the file's folder exists: an error at the end would lose the results."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"{value.parent} is no folder.", context, parameter)
    return value


def file_option(*names, **settings):
    """An option for a file that is written: a Path."""
    return click.option(*names, type=click.Path(dir_okay=False, path_type=Path),
                        callback=checked_file, **settings)


def write_json(content, file, out):
    """Writes it to the file, and says so."""
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    out.print(f"Wrote {file}", soft_wrap=True, markup=False)


def knob_options(command):
    """Adds --radix and --blocks, which some algorithms leave open."""
    for name, text in (
        ("blocks", "Number of blocks that the named algorithm cuts the message into; 0 = chosen."),
        ("radix", "Radix of the named algorithm's tree or hypercube; 0 = chosen."),
    ):
        most = {"blocks": 4096, "radix": 16}[name]
        command = click.option(f"--{name}", default=0, type=Number(0, most), help=text)(command)
    return command


def details(choice, window=True):
    """The cut of a choice as text: ", radix 3, 8 segments, 6 at a time"."""
    parts = []
    if choice["radix"]:
        parts.append(f"radix {choice['radix']}")
    if choice["blocks"] > 1:
        parts.append(f"{choice['blocks']} blocks")
    if choice["segments"] > 1:
        parts.append(f"{choice['segments']} segments"
                     + (" of the first half" if choice["whole_tail"] else ""))
        if window:
            parts.append(f"{choice['window']} at a time")
    return "".join(f", {part}" for part in parts)


def world_options(*without):
    """Adds a flag for each option that users set, but for those in `without`; see `set_options`."""

    def add(command):
        for row in reversed(_core.options()):
            if row["set_by"] == "everybody" and row["name"] not in without:
                flag = "--" + row["name"].replace("_", "-")
                command = click.option(
                    flag, row["name"], metavar=row["kind"].upper(), callback=check_option,
                    help=f"{row['sentence']} [default: {row['default'] or 'none'}]",
                )(command)
        return command

    return add


def check_option(context, parameter, value):
    """The checked value of a flag in its standard spelling, or None."""
    if value is None:
        return None
    try:
        return str(_core.checked_option(parameter.name, value, parameter.opts[0]))
    except ValueError as error:
        raise click.UsageError(str(error), context) from None


def set_options(values):
    """Sets the variables of these flags, which this process and its ranks then read."""
    variables = {row["name"]: row["variable"] for row in _core.options()}
    for name, value in values.items():
        if value is not None:
            os.environ[variables[name]] = value
