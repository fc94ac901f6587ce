"""A process that holds memory on a card, through the driver's own library and nothing else.

    python cuda_process.py MIB    takes MIB, says "holds", and then obeys lines on its stdin:
                                  "free" gives it back and says "freed", "take" takes it again;
                                  the end of stdin is its end. Out of memory, it exits 3.

It uses the first card that CUDA shows it (CUDA_VISIBLE_DEVICES).
"""

import ctypes
import sys

OUT_OF_MEMORY = 2
NO_ROOM = 3
MIB = 2**20


class Cuda:
    """The few calls of libcuda that are needed."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._do("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._do("cuDeviceGet", ctypes.byref(device), 0)
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._do("cuCtxSetCurrent", context)

    def _do(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code == OUT_OF_MEMORY:
            sys.exit(NO_ROOM)
        if code:
            sys.exit(f"{name}: error {code}")

    def take(self, mib: int) -> ctypes.c_uint64:
        """Take memory, and return where it is."""
        address = ctypes.c_uint64()
        self._do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(mib * MIB))
        return address

    def free(self, address: ctypes.c_uint64) -> None:
        """Give memory back."""
        self._do("cuMemFree_v2", address)


def say(word: str) -> None:
    """Tell whoever listens."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Hold memory as told."""
    mib = int(sys.argv[1])
    cuda = Cuda()
    held = cuda.take(mib)
    say("holds")
    for line in sys.stdin:
        if line.strip() == "free":
            cuda.free(held)
            say("freed")
        elif line.strip() == "take":
            held = cuda.take(mib)
            say("holds")


if __name__ == "__main__":
    main()
