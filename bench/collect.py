"""Puts files of measurements into a campaign: python bench/collect.py CAMPAIGN FILE...

Each file becomes a series of the CSV, called as the file is, in the place of the one that has that
name. Of `paceline bench --json` the CSV has medians, intervals and verdicts, and no repetitions; of
`paceline train replay --json` each launch.
"""

from pathlib import Path

import click

from paceline_bench.measure import campaign
from paceline.files import read_json
from paceline_bench.train import replay_campaign

ROOT = Path(__file__).resolve().parents[1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(file, records):
    """Put RECORDS, files of paceline bench or paceline train replay --json, into the campaign FILE.

    A campaign is of one of both."""
    contents = {path.stem: read_json(path, "file of measurements", lambda value: value)
                for path in records}
    if all(map(replay_campaign.is_replay, contents.values())):
        replay_campaign.add(file, contents, ROOT)
    else:
        campaign.add(file, {series: settings for name, content in contents.items()
                            for series, settings in campaign.of_json(content, name).items()}, ROOT)
    click.echo(f"{file}: {', '.join(contents)}")


if __name__ == "__main__":
    main()
