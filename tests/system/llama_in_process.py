"""A real llama.cpp server in a Python process: `python llama_in_process.py MODEL PORT`.

Same server code and routes as llama-server, for machines that the prebuilt binary does not fit. A
SIGTERM ends it at once and cuts whatever is in flight: unforgiving to a drain that is too early.
"""

import signal
import sys

import xllamacpp


def main() -> None:
    """Serve until killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.port = int(sys.argv[2])
    parameters.n_parallel = 2
    parameters.n_ctx = 4096
    parameters.cpuparams.n_threads = 1
    parameters.endpoint_metrics = True
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
