"""Chat and text completions in OpenAI's shapes, for the kinds that speak them."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from berth.sim.play import Play
from berth.sim.serving import Call
from berth.sim.work import ClientGone, Slot, Stopped, wait_until_gone

MODEL: Final = "simulated"
_UNLIMITED: Final = 32  # tokens of an answer whose length nobody named
_BYTES_PER_TOKEN: Final = 4

Facts: TypeAlias = dict[str, object]


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class Asked(msgspec.Struct):
    """The body of a request for a completion, as far as it matters here."""

    model: str | None = None
    messages: list[msgspec.Raw] | None = None
    prompt: str | list[msgspec.Raw] | None = None
    stream: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n_predict: int | None = None
    stream_options: _StreamOptions | None = None

    @property
    def limit(self) -> int | None:
        """How many tokens at most, None when the answer may end where it likes."""
        named = (self.max_tokens, self.max_completion_tokens, self.n_predict)
        return next((limit for limit in named if limit is not None and limit >= 0), None)


def parse_asked(body: bytes, *, chat: bool) -> Asked:
    """Read the body of a request.

    Raises:
        ValueError: it is no JSON, or does not say what to complete.
    """
    asked = msgspec.json.decode(body, type=Asked)
    if chat and asked.messages is None:
        raise ValueError("'messages' is required")
    if not chat and asked.prompt is None:
        raise ValueError("'prompt' is required")
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one answer is written down."""

    chat: bool
    model: str
    number: str = field(default_factory=lambda: secrets.token_hex(16))
    created: int = field(default_factory=lambda: int(time.time()))

    def role(self) -> Facts:
        """Write the first chunk of a chat."""
        return self._chunk({"delta": {"role": "assistant", "content": None}}, None)

    def piece(self, text: str) -> Facts:
        """Write a chunk with text."""
        return self._chunk({"delta": {"content": text}} if self.chat else {"text": text}, None)

    def last(self, reason: str, extra: Mapping[str, object]) -> Facts:
        """Write the chunk that tells why the text ends."""
        return {**self._chunk({"delta": {}} if self.chat else {"text": ""}, reason), **extra}

    def usage(self, usage: Facts) -> Facts:
        """Write the chunk that has no text but the count of tokens."""
        return {**self._chunk({}, None), "choices": [], "usage": usage}

    def whole(self, text: str, reason: str, extra: Mapping[str, object]) -> Facts:
        """Write an answer that is not streamed."""
        message = {"message": {"role": "assistant", "content": text}}
        choice = {"index": 0, **(message if self.chat else {"text": text}), "finish_reason": reason}
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._head(kind), "choices": [choice], **extra}

    def _chunk(self, content: Facts, reason: str | None) -> Facts:
        choice = {"index": 0, **content, "finish_reason": reason}
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._head(kind), "choices": [choice]}

    def _head(self, kind: str) -> Facts:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {
            "id": f"{prefix}-{self.number}",
            "object": kind,
            "created": self.created,
            "model": self.model,
        }


class Completions:
    """Answers requests for completions. `extra` gives what a kind adds to the last of an answer."""

    def __init__(self, play: Play, extra: Callable[[Slot], Mapping[str, object]]) -> None:
        self._play = play
        self._extra = extra

    def answer(self, call: Call, asked: Asked, *, chat: bool) -> None:
        """Answer one request; cut it as llama-server does when the engine is told to stop.

        A stream is then cut at its next ping, an answer that is not streamed never: its client has
        to hang up.
        """
        shape = Shape(chat=chat, model=asked.model or MODEL)
        with self._play.work.flight():
            try:
                (self._stream if asked.stream else self._whole)(call, asked, shape)
            except ClientGone:
                call.hang_up()
            except Stopped:
                cut_after = self._play.flags.cut_after_s if asked.stream else None
                wait_until_gone(call.client, cut_after)
                call.hang_up()

    def _stream(self, call: Call, asked: Asked, shape: Shape) -> None:
        with self._slot(call, asked) as slot:
            call.begin_stream()
            if shape.chat:
                call.send(shape.role())
            for word in self._play.work.tokens(call.client, slot):
                call.send(shape.piece(word))
            last, usage = shape.last(_reason(asked), self._extra(slot)), _usage(slot)
        call.send(last)
        if asked.stream_options is not None and asked.stream_options.include_usage:
            call.send(shape.usage(usage))
        call.send("[DONE]")
        call.end_stream()

    def _whole(self, call: Call, asked: Asked, shape: Shape) -> None:
        with self._slot(call, asked) as slot:
            text = "".join(self._play.work.tokens(call.client, slot))
            extra = {"usage": _usage(slot), **self._extra(slot)}
        call.reply(200, shape.whole(text, _reason(asked), extra))

    @contextmanager
    def _slot(self, call: Call, asked: Asked) -> Iterator[Slot]:
        """Have a slot, and leak when it is left: before the client reads that it was answered."""
        prompt_tokens = max(1, len(call.body) // _BYTES_PER_TOKEN)
        wanted = _UNLIMITED if asked.limit is None else asked.limit
        with self._play.work.slot(call.client, prompt_tokens, wanted) as slot:
            try:
                yield slot
            finally:
                self._play.memory.grow(self._play.flags.leak_mib)


def _reason(asked: Asked) -> str:
    return "stop" if asked.limit is None else "length"


def _usage(slot: Slot) -> Facts:
    return {
        "prompt_tokens": slot.prompt_tokens,
        "completion_tokens": slot.decoded_tokens,
        "total_tokens": slot.prompt_tokens + slot.decoded_tokens,
    }
