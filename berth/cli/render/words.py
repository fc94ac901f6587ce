r"""Words from outside (names of engines, processes, containers) as a terminal may show them.

Whatever a name holds, it never moves the cursor, changes a colour or begins a line: what is not
printable is shown by its escape (`\x1b`, `\n`), and so is what would turn the line around.
"""


def plain(text: str) -> str:
    """Return a text from outside with nothing in it that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
