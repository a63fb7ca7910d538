"""The verbs of authoring: check, explain, init, schema, synthesize. None of them opens confidential data."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from flows.terminal import OK, WRONG_INPUT, UserError, ask, load_or_say, say, shown, tell, wrapped
from flows.verbs import Verbs, add_verb
from release_specs.diagnostics import Diagnostic, Severity, SpecError, did_you_mean

if TYPE_CHECKING:
    from release_specs.starter import Starter


def add_authoring_verbs(verbs: Verbs) -> None:
    """Adds every verb of authoring, each with its help and an example."""
    _add_check(verbs)
    _add_explain(verbs)
    _add_init(verbs)
    _add_schema(verbs)
    _add_synthesize(verbs)


def _add_check(verbs: Verbs) -> None:
    check = add_verb(
        verbs,
        "check",
        _check,
        help="say everything that is wrong with a spec",
        description="Reads specs and the public files beside them and says every mistake at once, with file, line and\n"
        "column. No confidential data is needed or opened. Exit 0 without errors, 2 with.",
        example="margrave check release.yaml\n"
        "          margrave check --json *.yaml      the same, for programs\n"
        "          margrave explain shares-exceed    what the code in brackets means",
    )
    check.add_argument("specs", nargs="+", metavar="SPEC", type=Path, help="a release spec (YAML)")
    check.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    check.add_argument("--quiet", action="store_true", help="errors only: no warnings, notes or summary")
    check.add_argument("--normalised", action="store_true", help="print each spec without mistakes in its normal form")


def _check(chosen: argparse.Namespace) -> int:
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
        if chosen.normalised and not chosen.json:
            say(write_spec(loaded.spec))
            continue
        _show(loaded.diagnostics, chosen)
        if not chosen.json and not chosen.quiet:
            say(f"{path}: {summarise(loaded)}")
    errors = [item for item in found if item.severity is Severity.ERROR]
    if chosen.json:
        data = {"ok": not errors, "diagnostics": [item.as_data() for item in found]}
        say(json.dumps(data, ensure_ascii=False, indent=2))
    elif errors and not chosen.quiet:
        say(wrapped(_advice(errors)))
    return WRONG_INPUT if errors else OK


def _advice(errors: Sequence[Diagnostic]) -> str:
    """What to do after errors; a part with mistakes is not looked into further, so mending may bring up more."""
    more = f"'margrave explain {errors[0].code}' tells more"
    if len(errors) == 1:
        return f"1 error. {more}. Mend it and check again: some mistakes hide others."
    return f"{len(errors)} errors. {more} about the first. Mend these and check again: some mistakes hide others."


def _show(diagnostics: Sequence[Diagnostic], chosen: argparse.Namespace) -> None:
    for item in diagnostics if not chosen.json else ():
        if not chosen.quiet or item.severity is Severity.ERROR:
            say(shown(item))


def _add_explain(verbs: Verbs) -> None:
    explain = add_verb(
        verbs,
        "explain",
        _explain,
        help="explain an error code, with an example",
        description="A paragraph and an example for each code that 'check' prints in brackets.",
        example="margrave explain category-gap\n          margrave explain                  lists all codes",
    )
    explain.add_argument("code", nargs="?", metavar="CODE", help="the code in brackets; left out: list them all")
    explain.add_argument("--json", action="store_true", help="print JSON")


def _explain(chosen: argparse.Namespace) -> int:
    from release_specs.explain import explanations

    known = explanations()
    if chosen.code is None:
        width = max(map(len, known))
        lines = "\n".join(f"{code:{width}}  {item.title}" for code, item in known.items())
        data = {code: item.as_data() for code, item in known.items()}
        say(json.dumps(data, ensure_ascii=False, indent=2) if chosen.json else lines)
        return OK
    code = chosen.code.strip("[]")
    if code not in known:
        raise UserError(f"'{code}' is not a code; {did_you_mean(code, known)} 'margrave explain' lists them all")
    say(json.dumps(known[code].as_data(), ensure_ascii=False, indent=2) if chosen.json else str(known[code]))
    return OK


def _add_schema(verbs: Verbs) -> None:
    add_verb(
        verbs,
        "schema",
        _schema,
        help="print the JSON Schema of the language, for editors",
        description="The JSON Schema of the spec language, with descriptions, for completion and hints in an editor.",
        example="margrave schema > margrave.schema.json\n"
        "then, as the first line of a spec:\n"
        "          # yaml-language-server: $schema=margrave.schema.json",
    )


def _schema(_: argparse.Namespace) -> int:
    from release_specs.json_schema import language_schema

    say(json.dumps(language_schema(), ensure_ascii=False, indent=2))
    return OK


def _add_init(verbs: Verbs) -> None:
    init = add_verb(
        verbs,
        "init",
        _init,
        help="write a spec to start from",
        description="Writes a commented starter spec. From a data dictionary, or from the first line of a CSV file\n"
        "and your answers, it fills in the microdata section. Whatever a person must decide is the word DECIDE.\n"
        "Only the first line of a CSV file is ever read: no value of a record.\n"
        "What stands in a dictionary and in a file of answers: docs/starting_files.md",
        example="margrave init --out release.yaml\n"
        "          margrave init --dictionary dictionary.json --out release.yaml\n"
        "          margrave init --header persons.csv --out release.yaml",
    )
    way = init.add_mutually_exclusive_group()
    way.add_argument("--dictionary", type=Path, metavar="FILE", help="a data dictionary (JSON)")
    way.add_argument("--header", type=Path, metavar="FILE", help="a CSV file whose first line names the columns")
    init.add_argument("--answers", type=Path, metavar="FILE", help="with --header: answers (JSON), no questions")
    init.add_argument("--delimiter", metavar="CHARACTER", help="with --header: what stands between two names")
    init.add_argument("--entity", default="persons", metavar="NAME", help="with --header: what a row is (persons)")
    init.add_argument("--name", metavar="NAME", help="the release's name, for folders and the ledger")
    init.add_argument("--out", type=Path, metavar="SPEC", help="the file to write; left out: the terminal")


def _init(chosen: argparse.Namespace) -> int:
    from release_specs import starter

    if (chosen.answers or chosen.delimiter) and not chosen.header:
        raise UserError("--answers and --delimiter go with --header FILE")
    try:
        if chosen.dictionary:
            name = chosen.name or "my-release"
            made = starter.spec_from_dictionary(starter.read_document(chosen.dictionary), name=name)
        elif chosen.header:
            made = _from_header(chosen)
        else:
            return _write_starter(starter.starter_spec(), {}, chosen.out, undecided=0)
    except starter.StarterError as fault:
        raise UserError(str(fault)) from None
    return _write_starter(made.text, made.files, chosen.out, undecided=made.undecided)


def _from_header(chosen: argparse.Namespace) -> Starter:
    from release_specs import starter

    header, delimiter = starter.read_header(chosen.header, chosen.delimiter)
    if chosen.answers:
        answers = starter.read_answers(starter.read_document(chosen.answers), header)
    else:
        tell(_greeting(len(header)))
        answers = starter.ask_about(header, ask)
    return starter.spec_from_header(chosen.entity, answers, delimiter=delimiter, name=chosen.name or "my-release")


def _greeting(columns: int) -> str:
    number = f"{columns} columns." if columns > 1 else "1 column; if there are more, say what parts them: --delimiter."
    return f"{number} Answer ? to decide later: the choice is then marked DECIDE in the spec."


def _write_starter(text: str, files: Mapping[str, str], out: Path | None, *, undecided: int) -> int:
    if out is None:
        say(text)
        for name in files:
            tell(f"The spec names '{name}', a list that comes with it; write both with --out SPEC.")
        return OK
    contents = {out: text, **{out.parent / name: content for name, content in files.items()}}
    taken = [str(path) for path in contents if path.exists()]
    if taken:
        raise UserError(f"{', '.join(taken)} exists and is not overwritten; choose another --out")
    try:
        for path, content in contents.items():
            path.write_text(content, encoding="utf-8")
    except OSError as fault:
        raise UserError(f"{out} cannot be written: {fault.strerror}; choose another --out") from None
    tell(f"Wrote {', '.join(map(str, contents))}.")
    if undecided:
        number = f"{undecided} choices are" if undecided > 1 else "1 choice is"
        tell(f"{number} yours: search for DECIDE. Then: margrave check {out}")
    return OK


def _add_synthesize(verbs: Verbs) -> None:
    synthesize = add_verb(
        verbs,
        "synthesize",
        _synthesize,
        help="generate fake microdata that satisfies a spec",
        description="Generates fake microdata that satisfies a spec: records nested in groups and areas, with a\n"
        "realistic skew, marked as generated. For demos, rehearsals and tests. The same seed gives the same files.\n"
        "--records counts the rows of the innermost file: persons, not the households they live in. How many groups\n"
        "there are follows from it, by the sizes that 'expect.sizes' states, or by usual ones.",
        example="margrave synthesize release.yaml --records 100000 --seed 1 --out generated",
    )
    synthesize.add_argument("spec", metavar="SPEC", type=Path, help="a release spec (YAML)")
    synthesize.add_argument("--records", type=_count, required=True, metavar="N", help="rows of the innermost file")
    synthesize.add_argument("--seed", type=int, default=1, metavar="S", help="the same seed gives the same files (1)")
    synthesize.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    synthesize.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="the files' format")
    synthesize.add_argument(
        "--dirt", type=_dirt, default=Fraction(0), metavar="SHARE", help="spoil this share of values (0): 1%%"
    )


def _count(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of records; write 100000")
    return int(digits)


def _dirt(text: str) -> Fraction:
    from pydantic_core import PydanticCustomError

    from release_specs.language.values import read_number

    try:
        share = read_number(text)
    except PydanticCustomError as fault:
        raise argparse.ArgumentTypeError(fault.message()) from None
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not between 0 and 1; write 1%")
    return share


def _synthesize(chosen: argparse.Namespace) -> int:
    loaded = load_or_say(chosen.spec, "Nothing was generated")
    if loaded is None:
        return WRONG_INPUT
    from tabulation.synthesize import SynthesisError, synthesize

    tell(f"Generating {chosen.records:,} records ...")
    try:
        files = synthesize(
            loaded.spec,
            loaded.domain,
            records=chosen.records,
            seed=chosen.seed,
            out=chosen.out,
            form=chosen.format,
            dirt=chosen.dirt,
            folder=chosen.spec.parent,
        )
    except SynthesisError as fault:
        raise UserError(str(fault)) from None
    for file in files:
        say(f"{file.path}: {file.rows:,} {file.entity}")
    return OK
