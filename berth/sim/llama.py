"""What llama-server serves, in the shapes that were measured on builds b10434 and b11434.

`POST /unload` is none of its routes: it stands for whatever a person names with `--unload`.
"""

import time
from collections.abc import Callable
from typing import Final

from berth.sim.completions import MODEL, Completions, Facts, parse_asked
from berth.sim.play import Play
from berth.sim.serving import Call
from berth.sim.work import ClientGone, Slot, Stopped

_CONTEXT: Final = 4096  # tokens
_VOCABULARY: Final = 32000
_BUILD: Final = "b0-simulated"
_METRICS_TYPE: Final = "text/plain; version=0.0.4"


class LlamaSite:
    """The routes of a llama-server in its single-model mode."""

    software = "llama.cpp"

    def __init__(self, play: Play) -> None:
        self._play = play
        self._begun = time.time()
        self._completions = Completions(play, self._timings)
        self._routes: dict[tuple[str, str], Callable[[Call], None]] = {
            ("GET", "/health"): self._health,
            ("GET", "/v1/health"): self._health,
            ("GET", "/props"): self._props,
            ("GET", "/slots"): self._slots,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/models"): self._models,
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/chat/completions"): lambda call: self._complete(call, chat=True),
            ("POST", "/v1/completions"): lambda call: self._complete(call, chat=False),
            ("POST", "/unload"): self._unload,
        }

    def answer(self, call: Call) -> None:
        """Answer one call."""
        if not self._play.loaded:
            _refuse(call, 503, "unavailable_error", "Loading model")
            return
        self._routes.get((call.method, call.path), _not_found)(call)

    def _health(self, call: Call) -> None:
        call.reply(200, {"status": "ok"})

    def _props(self, call: Call) -> None:
        flags = self._play.flags
        props: Facts = {
            "default_generation_settings": {"n_ctx": _CONTEXT},
            "total_slots": flags.slots,
            "model_alias": MODEL,
            "model_path": f"{MODEL}.gguf",
            "modalities": {"vision": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": False,
            "endpoint_metrics": flags.metrics,
            "chat_template": "{{ messages }}",
            "build_info": _BUILD,
            "is_sleeping": False,
        }
        call.reply(200, props)

    def _slots(self, call: Call) -> None:
        work = self._play.work
        if self._play.flags.hang_slots:
            _never_answer(self._play, call)
        elif "fail_on_no_slot" in call.query and work.processing == len(work.slots):
            _refuse(call, 503, "unavailable_error", "no slot available")
        else:
            call.reply(200, [_slot_facts(slot) for slot in work.slots])

    def _metrics(self, call: Call) -> None:
        if not self._play.flags.metrics:
            message = "This server does not support metrics endpoint. Start it with `--metrics`"
            _refuse(call, 501, "not_supported_error", message)
            return
        work = self._play.work
        figures = (
            ("counter", "prompt_tokens_total", work.prompt_tokens),
            ("counter", "tokens_predicted_total", work.decoded_tokens),
            ("gauge", "requests_processing", work.processing),
            ("gauge", "requests_deferred", work.deferred),
        )
        text = "".join(
            f"# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {figure}\n"
            for kind, name, figure in figures
        )
        began = {"Process-Start-Time-Unix": str(int(self._begun))}
        call.reply_bytes(200, text.encode(), {"Content-Type": _METRICS_TYPE, **began})

    def _models(self, call: Call) -> None:
        listed: Facts = {"name": MODEL, "model": MODEL, "capabilities": ["completion"]}
        meta = {"n_vocab": _VOCABULARY, "n_ctx": _CONTEXT, "n_ctx_train": _CONTEXT}
        model: Facts = {
            "id": MODEL,
            "aliases": [],
            "tags": [],
            "object": "model",
            "created": int(self._begun),
            "owned_by": "llamacpp",
            "meta": meta,
        }
        call.reply(200, {"models": [listed], "object": "list", "data": [model]})

    def _complete(self, call: Call, *, chat: bool) -> None:
        try:
            asked = parse_asked(call.body, chat=chat)
        except ValueError as error:
            _refuse(call, 400, "invalid_request_error", str(error))
        else:
            self._completions.answer(call, asked, chat=chat)

    def _unload(self, call: Call) -> None:
        """Free the memory and end, whatever is in flight; or only say so."""
        if self._play.flags.lie_on_unload:
            call.reply(200, {"success": True})
            return
        self._play.memory.release()
        call.reply(200, {"success": True})
        self._play.endings.put_unloaded()

    def _timings(self, slot: Slot) -> Facts:
        token_ms = self._play.flags.token_s * 1000
        timings: Facts = {
            "prompt_n": slot.prompt_tokens,
            "predicted_n": slot.decoded_tokens,
            "predicted_ms": slot.decoded_tokens * token_ms,
            "predicted_per_token_ms": token_ms,
        }
        return {"timings": timings}


def _slot_facts(slot: Slot) -> Facts:
    """Show a slot; what it works at, or worked at last, only once it was used."""
    facts: Facts = {
        "id": slot.index,
        "n_ctx": _CONTEXT,
        "speculative": False,
        "is_processing": slot.processing,
    }
    if slot.task is None:
        return facts
    left = slot.wanted_tokens - slot.decoded_tokens
    return {
        **facts,
        "id_task": slot.task,
        "n_prompt_tokens": slot.prompt_tokens,
        "n_prompt_tokens_processed": slot.prompt_tokens,
        "n_prompt_tokens_cache": 0,
        "params": {"n_predict": slot.wanted_tokens},
        "next_token": [
            {
                "has_next_token": slot.processing,
                "has_new_line": False,
                "n_remain": left,
                "n_decoded": slot.decoded_tokens,
            }
        ],
    }


def _never_answer(play: Play, call: Call) -> None:
    try:
        play.work.pause(call.client, None)
    except (ClientGone, Stopped):
        call.hang_up()


def _not_found(call: Call) -> None:
    _refuse(call, 404, "not_found_error", "File Not Found")


def _refuse(call: Call, status: int, kind: str, message: str) -> None:
    call.reply(status, {"error": {"message": message, "type": kind, "code": status}})
