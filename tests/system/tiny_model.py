"""Writes a llama model of half a megabyte, so that a real llama-server can serve real chats.

The weights are random. Dimension 0 of the residual is kept constant, so that the output's column 0
decides which tokens are likely: words are, control and byte tokens never are (byte tokens would
make invalid UTF-8), and neither is end-of-stream: an answer is as long as was asked.
"""

from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

EMBEDDING = 64
LAYERS = 2
HEADS = 4
FEED_FORWARD = 128
CONTEXT = 4096
# fmt: off
WORDS = [
    "harbor", "ship", "berth", "quay", "crane", "tide", "wave", "wind", "rope", "anchor",
    "pilot", "cargo", "deck", "mast", "sail", "keel", "captain", "crew", "port", "dock", "pier",
    "mooring", "buoy", "signal", "lamp", "bell", "fog", "shore", "sand", "stone", "gull",
    "north", "south", "east", "west", "morning", "evening", "night", "slow", "fast", "first",
    "last", "waits", "leaves", "comes", "stays", "turns", "gives", "takes", "holds", "shows",
    "tells", "and", "or", "then", "while", "until", "after", "before", "with", "without",
    "between",
]
# fmt: on
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
NEVER, LIKELY = -40.0, 4.0
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write_tiny_model(path: Path) -> None:
    """Write the model."""
    tokens, kinds = _vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in _tensors(kinds).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _vocabulary() -> tuple[list[str], list[int]]:
    special = ["<unk>", "<s>", "</s>"]
    octets = [f"<0x{number:02X}>" for number in range(256)]
    letters = ["▁", *(f"▁{word}" for word in WORDS), *"abcdefghijklmnopqrstuvwxyz"]
    tokens = [*special, *octets, *letters]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * len(octets), *[NORMAL] * len(letters)]
    return tokens, kinds


def _tensors(kinds: list[int]) -> dict[str, npt.NDArray[np.float32]]:
    random = np.random.default_rng(seed=7)

    def weights(*shape: int) -> npt.NDArray[np.float32]:
        return (random.standard_normal(shape) * 0.05).astype(np.float32)

    embedding = weights(len(kinds), EMBEDDING)
    embedding[:, 0] = 1.0
    output = weights(len(kinds), EMBEDDING)
    output[:, 0] = [LIKELY if kind == NORMAL else NEVER for kind in kinds]
    tensors = {
        "token_embd.weight": embedding,
        "output_norm.weight": np.ones(EMBEDDING, dtype=np.float32),
        "output.weight": output,
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}{name}.weight"] = weights(EMBEDDING, EMBEDDING)
        tensors[f"{block}ffn_gate.weight"] = weights(FEED_FORWARD, EMBEDDING)
        tensors[f"{block}ffn_up.weight"] = weights(FEED_FORWARD, EMBEDDING)
        tensors[f"{block}ffn_down.weight"] = weights(EMBEDDING, FEED_FORWARD)
        tensors[f"{block}attn_output.weight"][0, :] = 0.0
        tensors[f"{block}ffn_down.weight"][0, :] = 0.0
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"{block}{name}.weight"] = np.ones(EMBEDDING, dtype=np.float32)
    return tensors
