"""Keys and peers of a WireGuard link. The link itself is a `link` artifact."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any

from holdfast.dataclass import asdict, dataclass, field
from holdfast.engine.artifact import Artifact, ArtifactKind, Batch, Key, MadeOf, Value
from holdfast.engine.plan import Changes, Cost, Operation, Risk, Verb

_ENDPOINT = re.compile(r" endpoint=(\S+)")


@dataclass(frozen=True, slots=True)
class Peer:
    """Keys are in base64. Prefixes are canonical; their order means nothing."""

    public_key: str
    allowed_ips: tuple[str, ...]
    endpoint: str = ""  # "192.0.2.1:51820", "[2001:db8::1]:51820"; "": not declared, not known
    keepalive: int = 0  # seconds; 0 is off
    preshared_key: str = field(default="", repr=False)

    def __str__(self) -> str:
        """As fields hold it, without secrets: of the preshared key a digest."""
        words = [self.public_key]
        if self.endpoint:
            words.append(f"endpoint={self.endpoint}")
        prefixes = sorted(map(ip_network, self.allowed_ips), key=lambda one: (one.version, one))
        words.append(f"allowed-ips={','.join(map(str, prefixes)) or 'none'}")
        words.append(f"keepalive={self.keepalive or 'off'}")
        words.append(f"psk={_digest(self.preshared_key) if self.preshared_key else 'none'}")
        return " ".join(words)


def _digest(key: str) -> str:
    """A key is 256 random bits, in no dictionary, so that a plain digest does not tell it; one that
    is made slow to compute would cost a thousand peers half a minute in each pass."""
    return hashlib.sha256(b"holdfast wireguard psk " + b64decode(key)).hexdigest()[:16]


def endpoint_of(text: str) -> str:
    """The endpoint in the text of a peer, "" where it says none."""
    found = _ENDPOINT.search(text)
    return found[1] if found else ""


def key_of(text: str) -> str:
    """The public key in the text of a peer."""
    return text.partition(" ")[0]


def _matches(name: str, desired: Value, seen: Value) -> bool:
    """A peer without a declared endpoint is right wherever it is."""
    if name != "peers" or not isinstance(desired, tuple) or not isinstance(seen, tuple):
        return desired == seen
    return len(desired) == len(seen) and all(
        map(same_peer, sorted(desired, key=key_of), sorted(seen, key=key_of))
    )


def same_peer(desired: str, seen: str) -> bool:
    return desired == seen or desired == _ENDPOINT.sub("", seen)


def _interrupts(operation: Operation) -> str:
    if operation.verb is Verb.DELETE:
        return "stops"
    changed = {change.field for change in operation.changes}
    known_by = changed & {"public_key", "listen_port"}
    return "has its peers connect anew" if known_by else ""


def _risk(verb: Verb, _subject: Artifact | Batch, changes: Changes) -> Cost:
    if verb is Verb.CREATE:
        return Risk.LOW, ""
    if verb is Verb.DELETE:
        return Risk.HIGH, "nothing passes the tunnel any more"
    if any(change.field in ("public_key", "listen_port") for change in changes):
        return Risk.HIGH, "its peers have to know the new key or port"
    return Risk.MEDIUM, "traffic of the peers that differ is treated differently at once"


def _shown(name: str, fields: Mapping[str, Any]) -> list[str]:
    words = ["wireguard", name]
    if fields.get("listen_port") is not None:
        words += ["listen-port", str(fields["listen_port"])]
    if fields.get("fwmark"):
        words += ["fwmark", f"{fields['fwmark']:#x}"]
    return [*words, "peers", str(len(fields.get("peers") or ()))]


WIREGUARD = ArtifactKind(
    name="wireguard",
    identity="interface name",
    fields=("public_key", "listen_port", "fwmark", "peers"),
    proof="a claim on the configuration of that very link. A link that is not ours is not"
    " configured",
    cleanup="keys and peers are taken off a link that Holdfast configured",
    deletes_orphans=True,
    after=("link",),
    matches=_matches,
    pins=("ifindex",),
    # Nobody else has the private key it belongs to.
    nonce_field="public_key",
    urgent=lambda tunnel, _operation: f"the tunnel {tunnel.key.name}",
    interrupts=_interrupts,
    risk=_risk,
    seen_by_name=True,
    made_of=MadeOf.CONTENT,
    shown=_shown,
)


def wireguard(
    name: str,
    private_key: str,
    public_key: str,
    peers: Iterable[Peer],
    *,
    listen_port: int | None = None,
    fwmark: int = 0,
) -> Artifact:
    """All that a WireGuard link is told; peers that are not named go. listen_port None: any.

    Secrets stand in the payload alone. An endpoint is compared with the one that was declared
    when it was last written: a peer that was heard from since may be somewhere else by now.
    """
    known = sorted(peers, key=lambda peer: peer.public_key)
    fields: dict[str, Value] = {"public_key": public_key, "fwmark": fwmark}
    if listen_port is not None:
        fields["listen_port"] = listen_port
    fields["peers"] = tuple(map(str, known))
    told = {"private_key": private_key, "peers": [asdict(peer) for peer in known]}
    return Artifact(Key(WIREGUARD.name, name), fields, payload=json.dumps(told).encode())


def secrets_of(artifact: Artifact) -> tuple[str, tuple[Peer, ...]]:
    """The private key and the peers, from the payload."""
    told = json.loads(artifact.payload)
    peers = tuple(
        Peer(**{**peer, "allowed_ips": tuple(peer["allowed_ips"])}) for peer in told["peers"]
    )
    return told["private_key"], peers
