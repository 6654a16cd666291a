"""What a pass may do. Defaults stand here, with their reasons."""

from __future__ import annotations

from holdfast.dataclass import dataclass

# A pass that removes more than half of what is owned is more often an accident (an empty or
# half-written file, a wrong template) than a wish; a handful of deletes is everyday work.
MAX_DELETE_SHARE = 50
FREE_DELETES = 10

CUT_REMEDY = "end the file with a newline if it is whole"


@dataclass(frozen=True, slots=True)
class Moved:
    """A resource that hangs on another link than by the configuration that was in force before."""

    owner: str
    link: str  # the kernel's name of the one it hangs on now
    former: str  # and of the one it hung on


@dataclass(frozen=True, slots=True)
class Policy:
    epoch: str = ""  # boot and network namespace the pass runs in: `BOOT/NAMESPACE`
    max_delete_share: int = MAX_DELETE_SHARE  # per cent of what is owned
    allow_mass_delete: bool = False
    allow_side_effects: bool = False  # others may lose what the kernel takes along with a change
    # Nobody asked for this very pass, and the configuration is not the one that was applied last:
    # what the router cannot do without is not deleted for it.
    unattended: bool = False
    # Nobody asked for this very pass, and one was begun with this configuration before: what goes,
    # goes because facts changed.
    held_to: bool = False
    doubt: str = ""  # why the configuration may not be all that was meant
    remedy: str = CUT_REMEDY  # what to do about that
    # Sources that have not said yet what they contribute. What they may still declare looks like
    # what nobody declares, so nothing is cleaned up before they have.
    unloaded: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()  # to links that may not be there
    held_by: str = ""  # which other installation has this network namespace, and what to do
    # Whether this namespace is known to be this installation's, so that a tag in it is proof.
    recovered: bool = True
    # The tag that this ledger gives for the first time ("protocol 72"): what carries it is others'.
    new_tag: str = ""
