"""Files of `paceline train --json` as one CSV, which has a row for each epoch, then for each point
of the loss.

The head of a series is as in replay_campaign, with rank 0's data and profile, and whether the
weights were equal. The CSV keeps what `paceline report dag` draws, and the loss as a curve of at
most MOST_POINTS points. It drops the other ranks' results, every loss but those of BSP-SGD, the
times of the last step, hashes, and the plan but for PLAN; the command has the options given.
"""

from paceline.files import read_text

from paceline_bench.measure import campaign

COLUMNS = ("series", "epoch", "seconds", "time_s", "loss", "accuracy", "images_per_s")
PLAN = ("model", "way", "over", "collectives")
FIRST = ("rank", "data", "weights_equal", "profile")  # of rank 0
MOST_POINTS = 200  # of a curve


def is_run(content):
    """True for the content of a file of `paceline train --json`."""
    return isinstance(content, dict) and all(key in content for key in ("plan", "ranks"))


def is_bsp(plan):
    """True for BSP-SGD, whose losses are drawn."""
    return plan["way"].startswith("bsp")


def means(losses):
    """Yields at most MOST_POINTS points of a curve, each the mean of as many steps."""
    width = -(-len(losses) // MOST_POINTS)
    for at in range(0, len(losses), width):
        part = losses[at : at + width]
        yield part[-1][0], sum(loss for _, loss in part) / len(part)


def rows_of(name, content):
    """Rows of a file: epochs, then losses, which have no epoch."""
    first = content["ranks"][0]
    for row in first["epochs"]:
        yield {**row, "series": name}
    if is_bsp(content["plan"]):
        for time_s, loss in means(first["losses"]):
            yield {"series": name, "time_s": time_s, "loss": loss}


def read(file):
    """{series: content}; contents as in the files, but for what is dropped. Raises UsageError that
    names the file."""
    return read_text(file, "campaign of training", parsed)


def parsed(text):
    """Parses the text of such a file. Raises ValueError."""
    return campaign.series_of(text, COLUMNS, start, add_row)


def start(head):
    """The content of a series without rows."""
    first, *others = head["ranks"]
    return {**head, "ranks": [{**first, "epochs": [], "losses": []}, *others]}


def add_row(content, row):
    """Puts a row where a file has it."""
    first = content["ranks"][0]
    if row["epoch"]:
        values = {column: float(row[column]) for column in COLUMNS[2:]}
        first["epochs"].append({"epoch": int(row["epoch"]), **values})
    else:
        first["losses"].append([float(row["time_s"]), float(row["loss"])])


def text_of(series):
    """The file's text; `series`: {name: content}."""
    return campaign.written(series, COLUMNS, head_of, rows_of)


def head_of(name, content):
    """The head of a file. Ranks other than 0 have their number alone."""
    first, *others = content["ranks"]
    ranks = [{key: first[key] for key in FIRST if key in first},
             *({"rank": one["rank"]} for one in others)]
    return {"series": name, **campaign.head_of(content),
            "plan": {key: content["plan"][key] for key in PLAN}, "ranks": ranks}


def add(file, series, hide=""):
    """Adds series to a file as campaign.add() does."""
    return campaign.put(file, series, hide, read, text_of)
