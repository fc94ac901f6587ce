"""`berth demo`."""

import json
from typing import Annotated

import typer

from berth.cli.context import Format, FormatOption


def demo(
    hand_overs: Annotated[int, typer.Option(help="how often the card changes hands", min=1)] = 6,
    format_: FormatOption = Format.TEXT,
) -> None:
    """See Berth work without a GPU: two engines take a card from each other, no reply is cut."""
    from berth.demo.hand_over import play

    text = format_ is Format.TEXT
    summary = play(print if text else lambda _: None, hand_overs)
    if not text:
        print(json.dumps(summary))
        return
    print(f"\n{summary['seconds']:.0f}s, 1 simulated card, {hand_overs + 1} engines")
    print(f"  hand-offs  {summary['handoffs']:>3}    each after the card showed the memory free")
    print(f"  collisions {summary['collisions']:>3}")
    print(f"  requests   {summary['requests']:>3}    cut {summary['requests_cut']}")
    print("Now with your own card:  berth daemon   then   berth run -- CMD")
