"""`python -m tests.docs PAGE...`: run the examples of pages and write down what they print.

Where the page is right already, it stays as it is. Read the difference before keeping it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs import compare
from tests.docs.examples import play
from tests.namespace import private_namespaces


def main(names: list[str]) -> int:
    for name in names:
        page = Path(name)
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder, private_namespaces():
            outcome = play(text, Path(folder))
        lines = text.splitlines()
        for command, said in reversed(outcome.said):
            if not compare.same(command.shown, said):
                lines[command.line : command.line + command.length] = said.splitlines()
        page.write_text("\n".join(lines) + "\n")
        print(f"{name}: {len(outcome.said)} commands")
        for problem in outcome.problems:
            if "\n---" not in problem:
                print(f"  {problem}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
