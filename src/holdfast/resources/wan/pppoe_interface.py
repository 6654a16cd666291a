"""PPPoEInterface: a PPP session over Ethernet, kept up by pppd."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from holdfast.engine.intent import Action, Intent
from holdfast.engine.kinds.file import FILE, file
from holdfast.engine.kinds.link import LINK, link, link_key
from holdfast.engine.kinds.service import SERVICE, Unit, pppoe_session, service
from holdfast.resources.facts import Gone, Lease
from holdfast.resources.resource import Content, Fault, Folder, Kind, Link, Resource
from holdfast.resources.site import Site
from holdfast.resources.spec import secret_file
from holdfast.resources.spec.shape import (
    Shape,
    Spec,
    choice,
    device_reference,
    flag,
    integer,
    optional,
    parsed,
    required,
    text,
)
from holdfast.resources.spec.values import ifname, parse_ifname

PPPD = "/usr/sbin/pppd"
SERVERS = "/run/holdfast/ppp"
HOOK = "/etc/holdfast/pppd-up"
_LONGEST = 255  # MAXNAMELEN and MAXSECRETLEN of pppd, less the final NUL

# pppd itself has one resolv.conf for all sessions, the last one's.
_HOOK = """\
#!/bin/sh
# Written by Holdfast: keeps the DNS servers that the far end of a session named, for Holdfast to
# read, and goes on with the hook of the machine. Changes are overwritten.
set -u
case "$1" in
'' | .* | */*) exit 1 ;;
esac
mkdir -p {folder} && cd {folder} || exit 1
printf 'nameserver %s\\n' "${{DNS1-}}" "${{DNS2-}}" >".$1.$$" && mv -f ".$1.$$" "$1.servers"
[ ! -x {machine} ] || exec {machine} "$@"
"""
_MACHINES_HOOK = "/etc/ppp/ip-up"

# pppd has the path of its folder compiled in: options of the machine, and its resolv.conf. Below
# another root it sees that of the root in its place. The shell is gone once pppd runs.
_FOLDER = "/etc/ppp"
_MOVED = f'mount --bind "$1" {_FOLDER} && shift && exec "$@"'


def _parse_word(value: str) -> str:
    """Fit to stand in quotes in an options file."""
    if not value or not value.isprintable() or len(value.encode()) > _LONGEST:
        raise ValueError(f"must be 1 to {_LONGEST} printable characters on one line")
    return value


def _secret() -> Shape:
    """As text, but what is wrong is said without the secret itself."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be text; write it in quotes")
        return _parse_word(value)

    return Shape(read, {"type": "string"}, "text")


class PPPoEInterface(Spec):
    interface: str = required(device_reference(), "the Ethernet link to the provider")
    ifname: str | None = optional(
        ifname(), "the kernel's name of the session's link; `ppp-NAME` where not given"
    )
    username: str = required(parsed(_parse_word, "text"), "as the provider gave it")
    password: str | None = optional(
        _secret(), "better in a file of its own: `passwordFile`", secret=True
    )
    password_file: str | None = optional(
        text("path"),
        "a file that only its owner can read, with the password on its first line; relative to the"
        " YAML file",
    )
    secret_encoding: str = optional(choice("plain"), "how the password is written", default="plain")
    service_name: str | None = optional(parsed(_parse_word, "text"), "only from this service")
    ac_name: str | None = optional(parsed(_parse_word, "text"), "only from this concentrator")
    default_route: bool = optional(
        flag(), "pppd makes it the default route of the main table", default=False
    )
    use_peer_dns: bool = optional(
        flag(), "learn the provider's name servers", default=False, name="usePeerDNS"
    )
    persist: bool = optional(
        flag(),
        "true: pppd dials again by itself when the session ends; false: it ends then, and is"
        " started anew after pauses that grow",
        default=True,
    )
    mtu: int = optional(integer(576, 1500), "largest packet sent, bytes", default=1492)
    mru: int = optional(integer(576, 1500), "largest packet received, bytes", default=1492)
    lcp_interval: int = optional(
        integer(1, 3600), "seconds between questions whether the other end is there", default=20
    )
    lcp_failure: int = optional(
        integer(1, 100), "so many without an answer end the session", default=3
    )
    ipv6: bool = optional(flag(), "speak IPv6 too", default=False)
    managed: bool | None = optional(
        flag(), "false: somebody else runs the session, and what needs it waits for its link"
    )


def ifname_of(resource: Resource) -> str:
    spec: PPPoEInterface = resource.spec
    return spec.ifname or f"ppp-{resource.name}"


def session(resource: Resource, site: Site) -> tuple[str, Lease | Gone | None]:
    ifname = ifname_of(resource)
    return ifname, site.facts.sessions.get(ifname)


def check(resource: Resource) -> Iterator[Fault]:
    spec: PPPoEInterface = resource.spec
    if spec.ifname is None:
        try:
            parse_ifname(ifname_of(resource))
        except ValueError as error:
            yield Fault(
                ("ifname",), f"is missing, and the one made of its name will not do: {error}"
            )
    if spec.password is not None and spec.password_file is not None:
        yield Fault(("passwordFile",), "and `password` cannot both be given")
    if spec.password is None and spec.password_file is None and spec.managed is not False:
        yield Fault(("passwordFile",), "is missing: give it, or `password`")
    if spec.password is not None:
        message = (
            "stands in this file, and in the ledger, which keeps every file that was applied;"
            " `passwordFile` keeps it apart"
        )
        yield Fault(("password",), message, warning=True)


def read(resource: Resource, folder: Folder) -> Content:
    """The password. It is no part of the configuration that the ledger keeps."""
    spec: PPPoEInterface = resource.spec
    if spec.password_file is None:
        return Content(spec.password)
    at = ("passwordFile",)
    secret = secret_file.read(folder, spec.password_file, at, _parse_word, stand_in="unknown")
    return Content(secret.value, faults=secret.faults)


def options(resource: Resource, site: Site) -> str:
    """The options file of pppd, password and all."""
    spec: PPPoEInterface = resource.spec
    lines = [
        "# Holdfast wrote this file and will write it again.",
        "plugin rp-pppoe.so",
        _quoted(f"nic-{site.ifname(spec.interface)}"),
        f"ifname {_quoted(site.ifname(resource.name))}",
        f"user {_quoted(spec.username)}",
        f"password {_quoted(str(resource.content))}",
        "hide-password",
        "noauth",
        "noipdefault",
        f"ip-up-script {_quoted(site.under(HOOK))}",
    ]
    if spec.default_route:
        lines += ["defaultroute", "replacedefaultroute"]
    else:
        lines.append("nodefaultroute")
    if spec.use_peer_dns:
        lines.append("usepeerdns")
    lines += ["persist", "maxfail 0", "holdoff 5"] if spec.persist else ["nopersist"]
    if spec.service_name is not None:
        lines.append(f"rp_pppoe_service {_quoted(spec.service_name)}")
    if spec.ac_name is not None:
        lines.append(f"rp_pppoe_ac {_quoted(spec.ac_name)}")
    lines += [
        f"mtu {spec.mtu}",
        f"mru {spec.mru}",
        f"lcp-echo-interval {spec.lcp_interval}",
        f"lcp-echo-failure {spec.lcp_failure}",
        "+ipv6" if spec.ipv6 else "noipv6",
    ]
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    """Inside double quotes pppd takes a backslash as the mark of the character after it."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def intents(resource: Resource, site: Site) -> Iterator[Intent]:
    spec: PPPoEInterface = resource.spec
    name = site.ifname(resource.name)
    # pppd makes the link when it starts, and sets it up once the session is.
    yield Intent(resource.id, link(name, {"up": True}), resource.place, Action.OBSERVE)
    if spec.managed is False:
        return
    path = f"/etc/holdfast/pppoe-{resource.name}.options"
    content = options(resource, site).encode()
    artifact = file(path, content, 0o600)
    yield Intent(resource.id, artifact, resource.place)
    script = _HOOK.format(folder=shlex.quote(site.under(SERVERS)), machine=_MACHINES_HOOK)
    hook = file(HOOK, script.encode(), 0o755)
    yield Intent(resource.id, hook, resource.place)
    unit = Unit(
        pppoe_session(resource.name),
        f"PPPoE session {resource.name} over {site.ifname(spec.interface)}",
        _argv(path, site),
        config=str(artifact.fields["sha256"]),
        folders=(site.under(_FOLDER),) if site.root else (),
    )
    requires = (artifact.key, hook.key, link_key(site.ifname(spec.interface)))
    yield Intent(resource.id, service(unit), resource.place, requires=requires)


def _argv(path: str, site: Site) -> tuple[str, ...]:
    program = (PPPD, "file", site.under(path), "nodetach")
    if not site.root:
        return program
    moved = ("/usr/bin/unshare", "--mount", "/bin/sh", "-c", _MOVED, "sh", site.under(_FOLDER))
    return (*moved, *program)


KINDS = (
    Kind(
        PPPoEInterface,
        "A PPPoE session, run by pppd. Its link comes and goes with the session: what needs it"
        " waits meanwhile. The password stands in a file that only root can read, and goes with"
        " the resource.",
        (LINK.name, FILE.name, SERVICE.name),
        "interface: wan\nifname: ppp0\nusername: user@example.net\npasswordFile: secret\n",
        intents,
        check,
        read,
        alias_asks_managed=True,
        link=Link(ifname_of, 1492),
        brings_addresses=True,
        lease=session,
        leads_out="interface",
    ),
)
