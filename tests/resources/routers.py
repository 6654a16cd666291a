"""Router files for tests, with as little writing as possible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.resources import registry
from holdfast.resources.router import Router, load_router


def document(*resources: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """A Router document of (kind, name, spec)."""
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "Router",
        "metadata": {"name": "test"},
        "spec": {
            "resources": [
                {
                    "apiVersion": registry.api_versions(kind)[0],
                    "kind": kind,
                    "metadata": {"name": name},
                    "spec": spec,
                }
                for kind, name, spec in resources
            ]
        },
    }


def load(folder: Path, *resources: tuple[str, str, dict[str, Any]]) -> Router:
    path = folder / "router.yaml"
    path.write_text(json.dumps(document(*resources), indent=1) + "\n")  # JSON is YAML
    return load_router(path)
