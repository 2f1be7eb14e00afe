"""Pack this tree and all that it needs on a worker into one archive for spark-submit: docs/spark-cluster.md.

    python tools/pack_environment.py environment.tar.gz

A wheel is built (the compiled kernel with it), installed into a new virtual environment together with what Spark's
Python workers want, and the environment is packed with venv-pack2. Spark itself is not in it: the cluster has it. The
workers need the same Python at the same path as this machine; where they do not have that, make the environment with
conda and pack it with conda-pack, whose archives bring their own Python.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Spark asks for pandas before it hands Arrow batches to Python, and for protobuf where Python keeps state.
WORKER_NEEDS = ("pandas>=2.2", "protobuf>=6.33")


def main() -> int:
    """Build, install, pack."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, help="what to write, such as environment.tar.gz")
    parser.add_argument("--wheel", type=Path, help="a wheel of this project that is there already")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hamlet-pack-") as scratch:
        wheel = arguments.wheel or built(Path(scratch))
        environment = Path(scratch) / "environment"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*pip, str(wheel), *WORKER_NEEDS)
        run(str(python), "-c", "import hamlet._core")  # the kernel is there, and fits this Python
        packer = Path(scratch) / "packer"
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packer), "venv-pack2")
        pack = (
            "import sys; sys.path.insert(0, sys.argv[1]); import venv_pack; "
            "venv_pack.pack(prefix=sys.argv[2], output=sys.argv[3], force=True)"
        )
        run(sys.executable, "-c", pack, str(packer), str(environment), str(arguments.archive.resolve()))
    sys.stdout.write(f"{arguments.archive}: {arguments.archive.stat().st_size / 2**20:.0f} MiB\n")
    return 0


def built(folder: Path) -> Path:
    """A wheel of this tree."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("hamlet_cep-*.whl")
    return wheel


def run(*command: str) -> None:
    """Run a command; if it fails, end with it as the message."""
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    raise SystemExit(main())
