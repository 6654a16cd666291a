"""`python -m benchmarks` lists, `python -m benchmarks NAME` runs one, `all` runs all."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Result

NAMES = (
    "cli-start", "routes-cold", "routes-noop", "routes-foreign", "routes-million",
    "firewall-change", "firewall-change-set", "default-route-failover", "plan-resources",
    "plan-resources-many", "plan-differences", "route-add-one", "drift-repair", "daemon-storm",
    "daemon-fight", "daemon-idle", "watch-storm", "source-put-one", "frr-batch", "frr-singles",
    "frr-noop", "frr-withdraw", "frr-attributes", "frr-restart",
)  # fmt: skip


def _module_name(name: str) -> str:
    return f"benchmarks.{name.replace('-', '_')}"


def run(name: str, repeat: int) -> Result:
    result: Result = importlib.import_module(_module_name(name)).run(repeat)
    return result


def table(results: Sequence[Result]) -> str:
    rows = [("benchmark", "ours", "peer", "peer's", "ratio", "bar", "")]
    for result in results:
        for peer, seconds in result.peers.items():
            ratio, bar = result.ours.seconds / seconds, result.bars.get(peer)
            met = "" if bar is None else "met" if ratio <= bar else "MISSED"
            rows.append(
                (
                    result.name,
                    f"{result.ours.seconds:.3f} s",
                    peer,
                    f"{seconds:.3f} s",
                    f"{ratio:.3f}",
                    "" if bar is None else f"{bar:g}",
                    met,
                )
            )
        if result.bar_s is not None:
            met = "met" if result.ours.seconds <= result.bar_s else "MISSED"
            rows.append(
                (result.name, f"{result.ours.seconds:.3f} s", "", "", "", f"{result.bar_s} s", met)
            )
        if result.rss_bar_mb is not None:
            met = "met" if result.ours.rss_mb <= result.rss_bar_mb else "MISSED"
            rss, limit = f"{result.ours.rss_mb:.0f} MB", f"{result.rss_bar_mb:g} MB"
            rows.append((result.name, rss, "memory", "", "", limit, met))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    choices = [*NAMES, *(name.replace("-", "_") for name in NAMES), "all"]
    parser.add_argument("name", nargs="?", choices=choices, metavar="NAME")
    parser.add_argument("--repeat", type=int, default=3, help="times each program is run")
    parser.add_argument("--results", type=Path, help="a file for one JSON object per line")
    options = parser.parse_args(arguments)
    if options.name is None:
        for name in NAMES:
            about = importlib.import_module(_module_name(name)).__doc__ or ""
            print(f"{name:<24}{about.partition(chr(10))[0]}")
        return 0

    results: list[Result] = []
    failed = False
    for name in NAMES if options.name == "all" else (options.name,):
        print(f"running {name}", file=sys.stderr)
        try:
            results.append(run(name, options.repeat))
        except RuntimeError as error:
            print(f"{name} failed: {error}", file=sys.stderr)
            failed = True
    lines = [json.dumps(result.as_json()) for result in results]
    if options.results is not None:
        options.results.write_text("".join(f"{line}\n" for line in lines))
    if results:
        print(table(results), *lines, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
