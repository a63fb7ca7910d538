"""What can go wrong while microdata are generated.

SynthesisError    the spec asks for records that cannot exist, or the files cannot be written
"""

from __future__ import annotations


class SynthesisError(Exception):
    """Nothing was generated: the message says what was found and what to do."""
