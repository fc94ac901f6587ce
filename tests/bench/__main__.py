"""`make bench`: every benchmark, one after the other."""

import importlib
import pkgutil

import tests.bench


def main() -> None:
    """Run every module of this folder that is called bench_…."""
    for module in sorted(m.name for m in pkgutil.iter_modules(tests.bench.__path__)):
        if module.startswith("bench_"):
            print(f"--- {module}", flush=True)
            importlib.import_module(f"tests.bench.{module}").main()


if __name__ == "__main__":
    main()
