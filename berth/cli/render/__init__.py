"""What is shown, as pure functions: a status or an event and a look in, lines out.

`words` makes text from outside harmless, `lines` fits and paints, `bar` draws a card's memory, and
each of the others is a screen or a part of one.
"""
