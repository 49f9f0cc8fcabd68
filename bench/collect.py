"""Puts files of measurements into a campaign: python bench/collect.py CAMPAIGN FILE...

Each file becomes a series of the CSV with the file's name, and replaces the series of that name.
The CSV holds medians, intervals and verdicts of `paceline bench --json`, without repetitions, each
launch of `paceline train replay --json`, or epochs and loss of `paceline train --json`.
"""

from pathlib import Path

import click

from paceline_bench.measure import campaign
from paceline.files import read_json
from paceline_bench.train import replay_campaign, run_campaign

ROOT = Path(__file__).resolve().parents[1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("records", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(file, records):
    """Put RECORDS into the campaign FILE.

    RECORDS are files of --json of paceline bench, paceline train replay or paceline train. A
    campaign holds files of one of these three kinds."""
    contents = {path.stem: read_json(path, "file of measurements", lambda value: value)
                for path in records}
    if all(map(replay_campaign.is_replay, contents.values())):
        replay_campaign.add(file, contents, ROOT)
    elif all(map(run_campaign.is_run, contents.values())):
        run_campaign.add(file, contents, ROOT)
    else:
        campaign.add(file, {series: settings for name, content in contents.items()
                            for series, settings in campaign.of_json(content, name).items()}, ROOT)
    click.echo(f"{file}: {', '.join(contents)}")


if __name__ == "__main__":
    main()
