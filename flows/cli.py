"""The `margrave` command: one short function per verb, heavy imports inside.

Exit codes: 0 success; 1 the thing checked does not hold; 2 the user's input is wrong; 3 held. No traceback reaches a
user: what nobody foresaw becomes one sentence and exit code 70.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from release_specs.diagnostics import Diagnostic, Severity, SpecError, did_you_mean

OK, FAILED, WRONG_INPUT, INTERNAL = 0, 1, 2, 70


class UserError(Exception):
    """Something only the user can mend, said in one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns its exit code."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except UserError as fault:
        sys.stderr.write(f"margrave: {fault}\n")
        return WRONG_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("margrave: stopped\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as fault:  # noqa: BLE001 - the last door: a traceback may quote what it should not
        sys.stderr.write(f"margrave: internal error: {_where(fault)}. Please report it with the command you ran.\n")
        return INTERNAL


def _where(fault: BaseException) -> str:
    """The kind of an unforeseen fault and where it happened: never its text, which may quote a record."""
    step = fault.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    place = f" in {Path(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}" if step is not None else ""
    return f"{type(fault).__name__}{place}"


def _run(arguments: Sequence[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help()
        return OK
    chosen = parser.parse_args(arguments)
    act: Callable[[argparse.Namespace], int] = chosen.act
    return act(chosen)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes say what to do."""

    def error(self, message: str) -> None:  # type: ignore[override]
        if "invalid choice" in message and "VERB" in message:
            word = message.split("invalid choice: ")[1].split("'")[1]
            message = f"'{word}' is not a verb of margrave; {did_you_mean(word, VERBS)}"
        raise UserError(f"{message}. See '{self.prog} --help'.")


def _version() -> str:
    try:
        return version("margrave")
    except PackageNotFoundError:
        return "unknown"


VERBS = ("check", "explain", "init", "schema", "synthesize")


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="margrave",
        formatter_class=form,
        description="Confidential microdata in, differentially private tables out. One YAML spec says all of a release.",
        epilog="Begin with:  margrave init > release.yaml && margrave check release.yaml\n"
        "Each verb has its own help and an example:  margrave check --help",
    )
    parser.add_argument("--version", action="version", version=f"margrave {_version()}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, title="verbs", parser_class=_Parser)

    check = verbs.add_parser(
        "check",
        help="say everything that is wrong with a spec",
        formatter_class=form,
        description="Reads specs and the public files beside them, and says every mistake at once, with file, line and\n"
        "column. No confidential data is needed or opened. Exit 0 without errors, 2 with.",
        epilog="example:  margrave check release.yaml\n"
        "          margrave check --json *.yaml      the same, for programs\n"
        "          margrave explain shares-exceed    what a code means",
    )
    check.add_argument("specs", nargs="+", metavar="SPEC", type=Path, help="a release spec (YAML)")
    check.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    check.add_argument("--quiet", action="store_true", help="errors only: no warnings, notes or summary")
    check.add_argument("--normalised", action="store_true", help="print each spec without mistakes in its normal form")
    check.set_defaults(act=_check)

    explain = verbs.add_parser(
        "explain",
        help="explain an error code, with an example",
        formatter_class=form,
        description="A paragraph and an example for each code that 'check' prints in brackets.",
        epilog="example:  margrave explain category-gap\n          margrave explain                  lists all codes",
    )
    explain.add_argument("code", nargs="?", metavar="CODE", help="the code in brackets; left out: list them all")
    explain.add_argument("--json", action="store_true", help="print JSON")
    explain.set_defaults(act=_explain)

    schema = verbs.add_parser(
        "schema",
        help="print the JSON Schema of the language, for editors",
        formatter_class=form,
        description="The JSON Schema of the spec language, with descriptions, for completion and hints in an editor.",
        epilog="example:  margrave schema > margrave.schema.json\n"
        "then, as the first line of a spec:\n"
        "          # yaml-language-server: $schema=margrave.schema.json",
    )
    schema.set_defaults(act=_schema)

    _add_init(verbs, form)
    _add_synthesize(verbs, form)
    return parser


def _check(chosen: argparse.Namespace) -> int:
    """`margrave check`: every mistake of every spec."""
    from release_specs.load import load_spec
    from release_specs.summary import summarise
    from release_specs.write import write_spec

    found: list[Diagnostic] = []
    for path in chosen.specs:
        try:
            loaded = load_spec(path)
        except SpecError as fault:
            found += fault.diagnostics
            _show(fault.diagnostics, chosen)
            continue
        found += loaded.diagnostics
        _show(loaded.diagnostics, chosen)
        if chosen.normalised and not chosen.json:
            _say(write_spec(loaded.spec))
        elif not chosen.json and not chosen.quiet:
            _say(f"{path}: {summarise(loaded)}")
    errors = [item for item in found if item.severity is Severity.ERROR]
    if chosen.json:
        _say(json.dumps({"ok": not errors, "diagnostics": [item.as_data() for item in found]}, ensure_ascii=False, indent=2))
    elif errors and not chosen.quiet:
        _say(f"{len(errors)} error{'s' * (len(errors) > 1)}. 'margrave explain {errors[0].code}' tells more about the first.")
    return WRONG_INPUT if errors else OK


def _show(diagnostics: Sequence[Diagnostic], chosen: argparse.Namespace) -> None:
    if chosen.json:
        return
    for item in diagnostics:
        if not chosen.quiet or item.severity is Severity.ERROR:
            _say(_coloured(item) if sys.stdout.isatty() and "NO_COLOR" not in os.environ else str(item))


def _coloured(item: Diagnostic) -> str:
    colour = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}[item.severity]
    sign = f"{item.severity}[{item.code}]"
    return str(item).replace(sign, f"\033[1;{colour}m{sign}\033[0m", 1)


def _explain(chosen: argparse.Namespace) -> int:
    """`margrave explain`: what a code means."""
    from release_specs.explain import explanations

    known = explanations()
    if chosen.code is None:
        if chosen.json:
            _say(json.dumps({code: item.as_data() for code, item in known.items()}, ensure_ascii=False, indent=2))
        else:
            width = max(map(len, known))
            _say("\n".join(f"{code:{width}}  {item.title}" for code, item in known.items()))
        return OK
    code = chosen.code.strip("[]")
    if code not in known:
        raise UserError(f"'{code}' is not a code; {did_you_mean(code, known)}. 'margrave explain' lists them all")
    _say(json.dumps(known[code].as_data(), ensure_ascii=False, indent=2) if chosen.json else str(known[code]))
    return OK


def _schema(_: argparse.Namespace) -> int:
    """`margrave schema`: the JSON Schema of the language."""
    from release_specs.json_schema import language_schema

    _say(json.dumps(language_schema(), ensure_ascii=False, indent=2))
    return OK


def _say(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
