"""The picture of a plan is what the command shows today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs import markdown
from tests.lanes import needs

TOOL = markdown.ROOT / "tools" / "plan_picture.py"
PICTURE = markdown.ROOT / "docs" / "images" / "plan.svg"


def test_picture_is_up_to_date(tmp_path: Path) -> None:
    allowed = subprocess.run(["unshare", "-rnu", "true"], capture_output=True, check=False)
    needs(allowed.returncode == 0, "user namespaces")
    drawn = tmp_path / "plan.svg"
    subprocess.run([sys.executable, str(TOOL), str(drawn)], check=True)
    again = f"draw it again: python tools/{TOOL.name} {PICTURE.relative_to(markdown.ROOT)}"
    assert PICTURE.read_text() == drawn.read_text(), again
