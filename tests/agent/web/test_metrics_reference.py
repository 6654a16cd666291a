"""docs/reference/metrics.md says what /metrics says.

`python -m tests.agent.web.test_metrics_reference` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.agent.web.metrics import reference, route_reference

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"


def render() -> str:
    head = (
        "# Metrics\n\n"
        "`holdfast serve` answers with these at `/metrics`, in the text format of Prometheus,"
        " besides those of the process itself (`process_*`, `python_gc_*`).\n\n"
        "| metric | type | label | meaning |\n|---|---|---|---|\n"
    )
    between = (
        "\n\nThese are of [routing control](route-control.md), under the names that dashboards of"
        " NovaRoute's agent know. What is seen of FRR is not read yet: what is active, connected,"
        " monitored, transacted and reconciled is 0.\n\n"
        "| metric | type | label | meaning |\n|---|---|---|---|\n"
    )
    return head + "\n".join(reference()) + between + "\n".join(route_reference()) + "\n"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == render()


if __name__ == "__main__":
    PAGE.write_text(render())
