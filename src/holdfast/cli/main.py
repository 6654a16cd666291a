"""The `holdfast` command. Every subcommand is imported only when it is asked for."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from holdfast import __version__
from holdfast.cli import standard_output
from holdfast.cli.exit import Exit
from holdfast.errors import ConfigError, HoldfastError
from holdfast.paths import Paths

# Command -> module, and the one line of help that the list of commands shows.
COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("validate", "Check a configuration."),
    "plan": ("plan", "Show what an apply would do, and by what right."),
    "apply": ("apply", "Make the host as declared."),
    "confirm": ("confirm", "Keep what was applied on trial."),
    "rollback": ("rollback", "Go back to a configuration that was applied before."),
    "generations": ("generations", "Show what was applied, and compare."),
    "reconcile": ("reconcile", "Run one pass without asking."),
    "serve": ("serve", "Keep the host as declared, and react to what changes."),
    "status": ("status", "Show how every resource is doing."),
    "events": ("events", "Show what happened, and what happens."),
    "top": ("top", "Watch resources, drift, health and events live."),
    "console": ("console", "Print the address of the console, with its key."),
    "explain": ("explain", "Tell the story of one artifact or resource."),
    "route": ("route", "Look at sessions and what is advertised, and declare routes."),
    "dynamic": ("dynamic", "Look at what other sources contribute, and hand parts in."),
    "adopt": ("adopt", "Take over objects that exist already."),
    "forget": ("forget", "Stop claiming objects, without touching them."),
    "cleanup": ("cleanup", "Remove what is owned, and nothing else."),
    "plugin": ("plugin", "Look at the plugins that are declared, and run one."),
    "action": ("action", "Approve, execute and undo what parts propose at providers."),
    "ledger": ("ledger", "Look into the ledger, export and import it."),
    "schema": ("schema", "Describe the configuration for editors."),
    "completion": ("completion", "Print a completion script for a shell."),
    "try": ("sandbox.command", "Try a configuration in a throwaway world, with stand-in links."),
    "demo": ("demo.command", "See Holdfast at work in a private network namespace."),
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's contract)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"holdfast.cli.{COMMANDS[cmd_name][0]}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("/"),
    envvar="HOLDFAST_ROOT",
    help="Keep every file below DIR instead of below /. Or $HOLDFAST_ROOT.",
)
@click.version_option(__version__, prog_name="holdfast", message="%(prog)s %(version)s")
@click.pass_context
def command(ctx: click.Context, root: Path) -> None:
    """Holds the network state of this machine to what a file declares, and touches only what it
    can prove it owns.

    Commands act on the network namespace they run in. FILE is a Router document, or `-` for one on
    standard input; without it, $HOLDFAST_FILE or else /etc/holdfast/router.yaml is read.
    """
    ctx.obj = Paths(root.absolute())


def run(arguments: Sequence[str]) -> int:
    """The whole command: never a traceback for what can happen, and always one of our codes."""
    sys.stdout = standard_output.named(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without → or · gets a ?
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
        return code
    except click.UsageError as error:
        error.show()
        return Exit.USAGE
    except HoldfastError as error:
        return say_error(error)
    except (KeyboardInterrupt, click.Abort):
        return _say(
            "interrupted; if something was half done, the next pass resolves it", Exit.INTERRUPTED
        )
    except BrokenPipeError:
        _silence_stdout()
        return Exit.PIPE
    except OSError as error:
        _raise_in_debug()
        if error.filename == standard_output.NAME:
            _silence_stdout()
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}{_remedy(error)}", Exit.FAILED)
    except Exception as error:
        _raise_in_debug()
        kind = type(error).__name__
        return _say(
            f"a fault in Holdfast itself: {kind}: {error}\n"
            "run it again with HOLDFAST_DEBUG=1 to see where, and report that",
            Exit.FAILED,
        )


def _invoke(arguments: Sequence[str]) -> int:
    instruction = os.environ.get("_HOLDFAST_COMPLETE")
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, "holdfast", "_HOLDFAST_COMPLETE", instruction)
    try:
        with command.make_context("holdfast", list(arguments)) as ctx:
            code = command.invoke(ctx)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    return code if isinstance(code, int) else Exit.OK


def _silence_stdout() -> None:
    """Python flushes it once more at exit; what cannot be written there is not news."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError) and os.geteuid() != 0:
        return "; this takes root: run it with sudo"
    if error.filename == standard_output.NAME:
        return "; not all that was to be shown is there"
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "; the disk is full: free some space, then run it again" if full else ""


def _raise_in_debug() -> None:
    if os.environ.get("HOLDFAST_DEBUG"):
        raise


def _say(message: str, code: int) -> int:
    from holdfast.cli.terminal import Style, say

    label = Style.of(sys.stderr)("holdfast:", "bold", "red")
    say([f"{label} {message}"], sys.stderr)
    return code


def say_error(error: HoldfastError) -> int:
    """What went wrong, on stderr; answers the exit code for it."""
    return (
        _say_invalid(error) if isinstance(error, ConfigError) else _say(str(error), error.exit_code)
    )


def _say_invalid(error: ConfigError) -> int:
    from holdfast.cli.terminal import counted, say

    say((str(problem) for problem in error.problems), sys.stderr)
    found = counted(len(error.problems), "problem")
    return _say(f"the configuration is invalid ({found}); nothing was touched", error.exit_code)
