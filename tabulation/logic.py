"""Yes and no as expressions, and conditions that are never unknown."""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

TRUE, FALSE = (ibis.literal(value) for value in (True, False))
NOTHING = ibis.null("int64")


def surely(condition: ir.BooleanValue) -> ir.BooleanValue:
    """Whether a condition is met; what is unknown is not."""
    return condition.fill_null(FALSE)
