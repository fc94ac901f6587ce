r"""Words from outside (names of engines, processes, containers) as a terminal may show them.

Whatever a name holds, it never moves the cursor, changes a colour or begins a line: a control
character is shown by its escape (`\x1b`, `\n`), as is what would turn the line around.
"""

import unicodedata
from typing import Final

_SHOWN_AS_ESCAPE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories: controls, formats (bidirectional marks), halves, unassigned, separators."""


def plain(text: str) -> str:
    """Return a text from outside with nothing in it that a terminal would act on."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(char)[1:-1] if unicodedata.category(char) in _SHOWN_AS_ESCAPE else char
        for char in text
    )
