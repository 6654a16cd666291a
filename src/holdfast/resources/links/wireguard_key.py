"""Keys of WireGuard: 32 bytes, written in base64, and the public key of a private one."""

from __future__ import annotations

from base64 import b64decode, b64encode

_SIZE = 32
_PRIME = 2**255 - 19
_A24 = 121665
# For one that is not known; no random key comes out like this.
STAND_IN = b64encode(b"\1" * _SIZE).decode()


def parse_key(text: str) -> str:
    try:
        raw = b64decode(text, validate=True)
    except ValueError:
        raw = b""
    if len(raw) != _SIZE or b64encode(raw).decode() != text:
        # Without the text: it may be a secret.
        raise ValueError("is not a WireGuard key: 32 bytes in base64, 44 characters, as `wg` makes")
    if not any(raw):
        raise ValueError("is all zeros, which WireGuard takes for no key")
    return text


def public_key(private: str) -> str:
    """X25519 of RFC 7748 with the base point. It does not hide from a clock, as nobody can time
    it who could not read the file with the key."""
    scalar = int.from_bytes(b64decode(private), "little")
    scalar = (scalar & ~(7 | 1 << 255)) | 1 << 254
    return b64encode(_times_base(scalar).to_bytes(_SIZE, "little")).decode()


def _times_base(scalar: int) -> int:
    """The Montgomery ladder: (x2:z2) and (x3:z3) always differ by the base point, whose x is 9."""
    base = 9
    x2, z2, x3, z3 = 1, 0, base, 1
    for bit in range(254, -1, -1):
        swap = scalar >> bit & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % _PRIME, b * b % _PRIME, d * a % _PRIME, c * b % _PRIME
        e = aa - bb
        x2, z2 = aa * bb % _PRIME, e * (aa + _A24 * e) % _PRIME
        x3, z3 = (da + cb) ** 2 % _PRIME, base * (da - cb) ** 2 % _PRIME
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * pow(z2, -1, _PRIME) % _PRIME
