"""What can be wrong with a release folder, said in one sentence.

ReleaseFault
"""

from __future__ import annotations


class ReleaseFault(Exception):  # noqa: N818 - a fault of the folder, named as it is spoken of
    """A file of a release is not what a release holds: which file, what was found, what was expected."""
