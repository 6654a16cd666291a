"""From YAML text to the printed plan for 5 000 resources.

    python -m benchmarks.plan_resources ROOT FILE
    python -m benchmarks.plan_resources --yaml FILE

prints the seconds that the plan takes, or loading the text with `yaml.CSafeLoader`, in a process
that has started and has its modules loaded.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from benchmarks.harness import HOLDFAST, Result, Run, compare, timed
from holdfast.cli import main as command_line
from tests.namespace import private_namespaces

COUNT = 5_000
BAR = 6.0
_HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata:
  name: benchmark
spec:
  resources:
"""
_LAN, _WAN = 10 << 24 | 1 << 16, 172 << 24 | 16 << 16  # 10.1.0.0 and 172.16.0.0


def text(count: int) -> str:
    """A fifth each of reservations, exposed services and addresses, two fifths of routes."""
    return _HEAD + "".join(_resources(count // 5))


def _resources(fifth: int) -> Iterator[str]:
    for name in ("lan", "wan"):
        yield _one("net", "Interface", name, f"ifname: {name}", "managed: false")
        yield _one("firewall", "Zone", name, f"interfaces: [{name}]")
    yield _one("net", "IPv4StaticAddress", "lan", "interface: lan", "address: 10.1.0.1/16")
    yield _one("net", "IPv4DHCPServer", "lan", "listenInterfaces: [lan]")
    yield _one(
        "net",
        "IPv4DHCPScope",
        "lan",
        "server: lan",
        "interface: lan",
        "rangeStart: 10.1.200.0",
        "rangeEnd: 10.1.201.0",
    )
    for n in range(fifth):
        host = _address(_LAN + 256 + n)
        yield _one(
            "net",
            "IPv4DHCPReservation",
            f"host-{n}",
            "scope: lan",
            f"mac: 02:00:00:{n >> 16:02x}:{n >> 8 & 255:02x}:{n & 255:02x}",
            f"address: {host}",
            f"hostname: host-{n}",
        )
        yield _one(
            "firewall",
            "ExposeService",
            f"service-{n}",
            "fromZone: wan",
            "viaInterface: wan",
            "protocol: tcp",
            f"externalPort: {10_000 + n}",
            f"internalAddress: {host}",
            "internalPort: 443",
        )
        yield _one(
            "net",
            "IPv4StaticAddress",
            f"address-{n}",
            "interface: wan",
            f"address: {_address(_WAN + n * 4 + 1)}/30",
        )
        for half in (0, 1):
            yield _one(
                "net",
                "IPv4Route",
                f"route-{n}-{half}",
                f"destination: {_address((100 << 24) + (2 * n + half << 8))}/24",
                f"gateway: {_address(_WAN + n * 4 + 2)}",
                "interface: wan",
            )


def _one(group: str, kind: str, name: str, *fields: str) -> str:
    spec = "".join(f"        {field}\n" for field in fields)
    return (
        f"    - apiVersion: {group}.holdfast.dev/v1alpha1\n      kind: {kind}\n"
        f"      metadata:\n        name: {name}\n      spec:\n{spec}"
    )


def _address(number: int) -> str:
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@contextmanager
def ground() -> Iterator[Path]:
    """A folder for files, and the links that they speak of."""
    with tempfile.TemporaryDirectory() as scratch, private_namespaces() as router:
        router.veth("lan", "lan-far")
        router.veth("wan", "wan-far")
        yield Path(scratch)


def written(folder: Path, count: int) -> Path:
    file = folder / f"{count}.yaml"
    file.write_text(text(count))
    return file


def run(repeat: int) -> Result:
    with ground() as folder:
        file = written(folder, COUNT)
        return compare(
            "plan-resources",
            repeat,
            lambda: plan(folder, file),
            {"CSafeLoader": lambda: load(file)},
            command=lambda: command(folder, file),
            bars={"CSafeLoader": BAR},
        )


def plan(folder: Path, file: Path) -> Run:
    return _said(str(folder / "root"), str(file))


def load(file: Path) -> Run:
    return _said("--yaml", str(file))


def command(folder: Path, file: Path) -> Run:
    return timed([HOLDFAST, "--root", str(folder / "root"), "plan", str(file)])


def _said(*arguments: str) -> Run:
    """What a process of this module says it took."""
    with tempfile.TemporaryFile() as said:
        command = [sys.executable, "-m", "benchmarks.plan_resources", *arguments]
        done = timed(command, cwd=Path(__file__).parent.parent, stdout=said)
        said.seek(0)
        return Run(float(said.read()), done.rss_mb)


def _load(file: str) -> float:
    import yaml

    content = Path(file).read_bytes()
    started = time.perf_counter()
    yaml.load(content, yaml.CSafeLoader)
    return time.perf_counter() - started


def _plan(root: str, file: str) -> float:
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "plan.txt").open("w") as out:
        warm_up = Path(scratch) / "router.yaml"
        warm_up.write_text(text(10))
        with redirect_stdout(out):
            command_line.run(["--root", scratch, "plan", str(warm_up)])
            started = time.perf_counter()
            status = command_line.run(["--root", root, "plan", file])
            out.flush()
            seconds = time.perf_counter() - started
    if status:
        raise RuntimeError(f"holdfast plan ended with {status}")
    return seconds


def main(first: str, second: str) -> int:
    gc.disable()  # as the command itself does
    print(_load(second) if first == "--yaml" else _plan(first, second))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
