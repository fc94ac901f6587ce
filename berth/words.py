r"""Words from outside (names of engines, processes, containers) as a terminal may show them.

Whatever a name holds, it never moves the cursor, changes a colour or begins a line: what is not
printable is shown by its escape (`\x1b`, `\n`), and so is what would turn the line around. A byte
that was no UTF-8 (on a command line or in a file's name, where Python keeps it as a lone surrogate)
is shown as that byte: `\xe8`.
"""

from typing import Final


def plain(text: str) -> str:
    """Return a text from outside with nothing in it that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\x{number - _BYTES_FROM:02x}" if number in _LONE_BYTES else repr(char)[1:-1]


_BYTES_FROM: Final = 0xDC00
_LONE_BYTES: Final = range(_BYTES_FROM + 0x80, _BYTES_FROM + 0x100)
"""What `surrogateescape` makes of bytes that are no UTF-8."""


def is_utf8(text: str) -> bool:
    """Tell whether a text can be written as UTF-8: it came as such."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: none, one or two for each character."""
    if text.isascii() or all(ord(char) < _WIDTHS_OF_ITS_OWN for char in text):
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 -- most screens never need it

    return cell_len(text)


_WIDTHS_OF_ITS_OWN: Final = 0x300
"""From here on a character may take no cell, or two."""


def first_cells(text: str, width: int) -> str:
    """Return as much of a text as fits."""
    if cells(text) <= width:
        return text
    taken = 0
    for index, char in enumerate(text):
        taken += cells(char)
        if taken > width:
            return text[:index]
    return text
