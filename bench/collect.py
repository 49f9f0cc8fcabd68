"""Puts files of `paceline bench --json` into a campaign: python bench/collect.py CAMPAIGN FILE...

Each file becomes a series of the CSV, called as the file is, in the place of the one that has that
name. Repetitions are left behind: the CSV has medians, intervals and verdicts.
"""

from pathlib import Path

import click

from paceline.bench import campaign
from paceline.files import read_json

ROOT = Path(__file__).resolve().parents[1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(file, records):
    """Put RECORDS, files of paceline bench --json, into the campaign FILE."""
    series = {}
    for path in records:
        content = read_json(path, "file of measurements", lambda value: value)
        series |= campaign.of_json(content, path.stem)
    campaign.add(file, series, ROOT)
    click.echo(f"{file}: {', '.join(series)}")


if __name__ == "__main__":
    main()
