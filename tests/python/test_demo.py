"""The demo: `paceline train`'s trainer under torchrun, over Paceline and over gloo."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from length import in_long

pytest.importorskip("torch")

pytestmark = pytest.mark.ranks

DEMO = Path(__file__).parents[2] / "demo/run.py"


@in_long
def test_both_backends_train_the_same_steps(tmp_path):
    # 1438 pictures are two steps of 2 x 300: the third is of another epoch, which it ends.
    words = ["--ranks", "2", "--rounds", "1", "--steps", "3", "--batch", "300", "--out", tmp_path]
    done = subprocess.run([sys.executable, DEMO, *words], capture_output=True, text=True,
                          timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["steps"], summary["global_batch"]) == (3, 600)
    assert summary["parameters"] == 1_860_138, "digits-resnet of paceline train"
    assert summary["comparisons"]["paceline"]["same_final_weights"]
    assert (tmp_path / "timeline.svg").read_text().startswith("<svg")
    for file in sorted(tmp_path.glob("runs/*/rank*.json")):
        record = json.loads(file.read_text())
        assert record["steps_per_epoch"] == 2 and len(record["losses"]) == 3
        for step in record["steps"]:
            begin, forward_end, backward_end, end = step["edges"]
            assert begin <= forward_end <= backward_end <= end
            assert all(begin <= issue <= done <= end for _, _, issue, _, done in step["buckets"])
        # DDP makes its buckets in the first step.
        assert len(record["steps"][2]["buckets"]) > 2, "gradients of 7.4 MB in buckets of 1 MB"
    assert len(list(tmp_path.glob("runs/*/rank*.json"))) == 4
