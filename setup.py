"""The Cython extensions, nothing else; all metadata stands in pyproject.toml.

``HAMLET_DEBUG_BUILD=1`` builds the same sources with bounds checks, C-level assertions and debug symbols (``make
debug``). ``HAMLET_SANITIZE=1`` has the address sanitizer look at every access (`fuzz/README.md`: its runtime is loaded
before Python, and nothing is linked with one). ``HAMLET_LATER=1`` compiles nothing: `make` installs what is needed
first, then compiles in place, and pip would do the same work before. Never ``-march=native``: a wheel has to run on
other machines than the one that built it.
"""

import os
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("HAMLET_DEBUG_BUILD") == "1"
SANITIZE = os.environ.get("HAMLET_SANITIZE") == "1"
LATER = os.environ.get("HAMLET_LATER") == "1"
PACKAGES = ("hamlet", "optimizer")
SHARED = "hamlet._shared"  # what Cython would else write into each module that knows memory views
BASELINES = "bench/baselines"  # compiled beside their sources for the benchmarks, never part of a wheel
FOLDERS = (*PACKAGES, BASELINES) if "--inplace" in sys.argv else PACKAGES

# One place for all compiler directives, so that no .pyx differs from the others in secret.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,  # C semantics: the caller excludes zero divisors
    "initializedcheck": DEBUG,
    "embedsignature": True,
}


HEADERS = sorted(header for package in PACKAGES for header in Path(package).rglob("*.h"))


def extension(source: Path) -> Extension:
    """One extension module per source, named after its place: hamlet/_core.pyx is ``hamlet._core``."""
    vectors = not {"lanes", "simd"}.isdisjoint(source.parts)
    near = [source.parent, *dict.fromkeys(header.parent for header in HEADERS)]
    return Extension(
        name=".".join(source.with_suffix("").parts),
        sources=[source.as_posix()],
        depends=[header.as_posix() for header in HEADERS if header.parent in source.parents],
        include_dirs=[folder.as_posix() for folder in dict.fromkeys(near)],  # the generated C lies elsewhere
        # no contraction: sums of doubles come out alike on processors with fused multiply-add and without
        extra_compile_args=[
            "-fno-strict-aliasing",
            "-ffp-contract=off",
            *(["-O0", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0"]),
            # GCC 12 fails at vectors below -O2
            *(["-O3" if vectors else "-O1", "-g1", "-fsanitize=address"] if SANITIZE else []),
            "-Wno-maybe-uninitialized",
            "-Wno-unused-variable",
        ],
        define_macros=[] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
    )


def sources() -> list[Path]:
    """Every .pyx of the installed packages, relative to this folder, in a fixed order; in place the baselines too."""
    return [source for folder in FOLDERS for source in sorted(Path(folder).rglob("*.pyx"))]


def compiled() -> list[Extension]:
    """The extensions, as C that lies in no folder of sources.

    What Cython would write into each module that knows memory views is a module of hamlet; optimizer is whole without.
    """
    if LATER:
        return []
    found = sources()
    own = [source for source in found if source.parts[0] == SHARED.split(".")[0]]
    options = {
        "compiler_directives": DIRECTIVES,
        "build_dir": "build/cython-debug" if DEBUG else "build/cython",  # no generated C beside the sources
        "nthreads": os.cpu_count() or 1,
    }
    shared = Path(*SHARED.split(".")).with_suffix(".c")
    return [
        *cythonize([extension(source) for source in (shared, *own)], shared_utility_qualified_name=SHARED, **options),
        *cythonize([extension(source) for source in found if source not in own], **options),
    ]


def remove_strays(extensions: list[Extension]) -> None:
    """Remove compiled modules of earlier states that have no source any more.

    One that is imported binds the kernel's functions to structs of another layout, and memory is corrupted.
    """
    names = {each.name for each in extensions}
    for root in (Path(), *Path("build").glob("lib.*")):
        for folder in FOLDERS:
            for found in (root / folder).rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
                if ".".join([*found.relative_to(root).parent.parts, found.name.partition(".")[0]]) not in names:
                    found.unlink()


extensions = compiled()
if extensions:
    remove_strays(extensions)
setup(ext_modules=extensions, options={"build_ext": {"parallel": os.cpu_count() or 1}})
