"""The engine of `margrave init`: a first spec from nothing, from a data dictionary, or from a header and answers.

What is known is filled in; what a person must decide is the word DECIDE, with a comment that says what to decide and
what is suggested. Nothing here reads microdata: a domain that was looked up in the data would not be public.

    dictionary.json -> dictionary.py --.
                                        description.py -> sections.py (areas.py, columns.py) -> outline.py -> YAML text
    CSV header      -> header.py ------'
"""

from release_specs.starter.description import StarterError
from release_specs.starter.header import Answers, Ask, ask_about, read_answers, read_header
from release_specs.starter.sections import Starter, read_document, spec_from_dictionary, spec_from_header, starter_spec

__all__ = [
    "Answers",
    "Ask",
    "Starter",
    "StarterError",
    "ask_about",
    "read_answers",
    "read_document",
    "read_header",
    "spec_from_dictionary",
    "spec_from_header",
    "starter_spec",
]
