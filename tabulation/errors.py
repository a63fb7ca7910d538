"""What may be said when microdata cannot be used: the rule that is broken and where, never what a record holds.

MicrodataError            the files do not have the structure that the spec declares
  EngineError             the engine beneath failed; its own words are withheld
"""

from __future__ import annotations


class MicrodataError(Exception):
    """The microdata are refused. `code` names the rule, `entity` and `column` the place; no value, row or path."""

    def __init__(self, code: str, entity: str, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.code, self.entity, self.column = code, entity, column

    def bare(self) -> MicrodataError:
        """The same error without cause, context or the frames it passed through, whose variables hold records."""
        return type(self)(self.code, self.entity, str(self), column=self.column)


class EngineError(MicrodataError):
    """Something beneath failed and its own words may quote records: only the stage is told."""
