"""The way back as bytes: compact, and whole or not read at all."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from holdfast.engine.artifact import Artifact, Batch, Key
from holdfast.engine.claim import Claim, ClaimState, Provenance
from holdfast.engine.intent import Action, Intent
from holdfast.engine.kinds import KINDS, route
from holdfast.engine.snapshot import Snapshot

FORMAT = 1
# 100 000 routes: level 1 takes some 10 ms for half a megabyte, and higher ones gain little.
_LEVEL = 1


def pack(before: Snapshot) -> bytes:
    said = {
        "format": FORMAT,
        "epoch": before.epoch,
        "tag": before.tag,
        "claims": [_claim(claim) for claim in before.claims],
        "intents": [_intent(intent) for intent in before.intents],
        "batches": [_batch(batch) for batch in before.batches if len(batch)],
        "others": base64.b64encode(before.others).decode(),
    }
    return zlib.compress(json.dumps(said, separators=(",", ":")).encode(), _LEVEL)


def unpack(data: bytes) -> Snapshot:
    """ValueError where it is not what `pack` made."""
    try:
        said = json.loads(zlib.decompress(data))
        if said["format"] != FORMAT:
            raise ValueError(f"format {said['format']} is not known")
        return Snapshot(
            said["epoch"],
            said["tag"],
            tuple(map(_claim_of, said["claims"])),
            tuple(map(_intent_of, said["intents"])),
            tuple(map(_batch_of, said["batches"])),
            # An older Holdfast kept none.
            base64.b64decode(said.get("others", "")),
        )
    except (zlib.error, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the way back cannot be read: {error!r}") from error


def _claim(claim: Claim) -> list[Any]:
    return [
        *claim.key, claim.owners, claim.provenance, claim.state, dict(claim.fields), claim.origin,
        claim.generation, claim.epoch, claim.nonce,
        None if claim.original is None else dict(claim.original), claim.revert,
    ]  # fmt: skip


def _claim_of(said: list[Any]) -> Claim:
    kind, name, owners, provenance, state, fields, origin = said[:7]
    generation, epoch, nonce, original, revert = said[7:]
    return Claim(
        Key(kind, name),
        tuple(owners),
        Provenance(provenance),
        ClaimState(state),
        _fields(fields),
        origin,
        generation,
        epoch,
        nonce,
        None if original is None else _fields(original),
        revert,
    )


def _intent(intent: Intent) -> list[Any]:
    artifact = intent.artifact
    payload = base64.b64encode(artifact.payload).decode()
    return [
        intent.owner, *artifact.key, dict(artifact.fields), payload, intent.origin, intent.action,
        [list(key) for key in intent.requires], intent.creates, intent.revert,
    ]  # fmt: skip


def _intent_of(said: list[Any]) -> Intent:
    owner, kind, name, fields, payload, origin, action, requires, creates, revert = said
    return Intent(
        owner,
        Artifact(Key(kind, name), _fields(fields), base64.b64decode(payload)),
        origin,
        Action(action),
        tuple(Key(*key) for key in requires),
        creates,
        revert,
    )


def _batch(batch: Batch) -> list[Any]:
    """The template by the fields of its first artifact; keys of one template are of one length."""
    first = dict(batch.artifact(batch.keys[0]).fields)
    return [batch.kind.name, first, base64.b64encode(b"".join(batch.keys)).decode()]


def _batch_of(said: list[Any]) -> Batch:
    kind, first, packed = said
    shared, key = route.template_of(Artifact(Key(kind, ""), _fields(first)))
    keys, width = base64.b64decode(packed), len(key)
    if len(keys) % width:
        raise ValueError("the way back cannot be read: a key is cut short")
    split = [keys[at : at + width] for at in range(0, len(keys), width)]
    return Batch(KINDS[kind], shared, split)


def _fields(said: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in said.items()}
