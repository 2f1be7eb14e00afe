"""A Spark session for a job, what its tasks raised, and how far it is.

A session that is already there is used as it is: nothing is set on it. Under ``spark-submit`` the session is made of
what spark-submit says. Otherwise a JVM is started here whose log goes to a temporary file, so that a terminal shows
results, progress and one clear message, not a log.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, TaskContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from hamlet.errors import DataError, HamletError, JobError, OptionError, UnsupportedError
from hamlet.input.ordering import BATCH_ROWS
from hamlet.java import check_java
from hamlet.spark.failures import TaskError, packed, unpacked_error

Progress = Callable[[str, int, int], None]  # what is done, tasks done, tasks in all

_LOCAL = re.compile(r"local(\[.*\])?", re.ASCII)
_UNREADABLE = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "CANNOT_READ", "MALFORMED")
_POLL_SECONDS = 0.2


# --------------------------------------------------------------------------------------------------- errors


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """A `HamletError` leaves the task as a `TaskError`."""
    try:
        yield
    except HamletError as error:
        raise TaskError(f"{error}\n{packed(error)}") from None


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Errors of Spark as errors of this project, with their fields and without Java's stack traces.

    Raises
    ------
    HamletError
        What a task raised, of the class that the same mistake has in process; DataError for input that Spark cannot
        read.
    JobError
        Anything else that stopped the job.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _translation(error) from None


def _translation(error: PySparkException | Py4JError) -> Exception:
    text = str(error)
    if raised := unpacked_error(text):
        return raised
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or ""
    brief = _brief(text)
    if isinstance(error, AnalysisException) or condition.startswith(_UNREADABLE):
        return DataError(f"Spark cannot read the input: {brief}")
    return JobError(f"Spark stopped the job: {brief}")


def _brief(text: str) -> str:
    """The one line of a message that says what happened: of Spark's before its stack trace, of Python's after it."""
    head, traceback, tail = text.rpartition("Traceback (most recent call last):")
    lines = [line for line in (tail if traceback else text).splitlines() if line.strip()]
    if traceback:
        lines = [line for line in lines if not line[0].isspace()]
    found = (line.strip() for line in lines if not line.startswith("An error occurred while calling"))
    return next(found, head.strip() or "no reason given")


def task_number() -> int:
    """The number of the task that is running."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


# -------------------------------------------------------------------------------------------------- session


def check_pandas() -> None:
    """Spark hands Arrow batches to Python only where pandas is installed, though nothing here uses it.

    Raises
    ------
    UnsupportedError
        If pandas is missing.
    """
    if importlib.util.find_spec("pandas") is None:
        raise UnsupportedError(
            "Spark needs pandas to be installed before it runs Python over Arrow batches; it comes with: "
            "pip install 'hamlet-cep[spark]'"
        )


@contextlib.contextmanager
def without_pandas_warning() -> Iterator[None]:
    """No warning of Spark about versions of pandas, of which no object is ever made."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


@contextlib.contextmanager
def session(
    master: str | None, settings: Mapping[str, str] | None = None, log_level: str | None = None
) -> Iterator[SparkSession]:
    """The session to run a job in; one that is made here is stopped at the end.

    Parameters
    ----------
    master : str, optional
        The Spark master; ``local[*]`` unless spark-submit or an active session has one.
    settings : mapping of str to str, optional
        Spark's own, of a session that is made here.
    log_level : str, optional
        What Spark logs: ``ALL``, ``DEBUG``, ``INFO``, ``WARN``, ``ERROR``, ``FATAL``, ``OFF``.

    Raises
    ------
    OptionError
        If another master is asked for than the one that is there, or the master is wrong.
    UnsupportedError
        If Java or pandas is missing, or Java is too old.
    """
    check_pandas()
    active = SparkSession.getActiveSession()
    if active is not None:
        _refuse_other(master, active.sparkContext.master, "of the session that is already there")
        _set(active, settings, log_level)
        yield active
        return
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM, and this process
        spark = SparkSession.builder.appName("hamlet").getOrCreate()
        try:
            _refuse_other(master, spark.sparkContext.master, "that spark-submit has set")
            _set(spark, settings, log_level)
            yield spark
        finally:
            _stop(spark)
        return
    check_java()
    with _log_file() as log, without_pandas_warning(), _quiet_gateway():
        spark = _started(master or "local[*]", log, settings or {})
        try:
            _set(spark, None, log_level)
            yield spark
        finally:
            _stop(spark)


def _set(spark: SparkSession, settings: Mapping[str, str] | None, log_level: str | None) -> None:
    """Settings of a session that is there, as far as it takes them."""
    if log_level is not None:
        spark.sparkContext.setLogLevel(log_level)
    for name, value in (settings or {}).items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            raise OptionError(f"the session is already there, and {name} cannot be set any more: {error}") from None


def _stop(spark: SparkSession) -> None:
    with at_the_end(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a JVM that an interrupt has reached first
        spark.stop()


@contextlib.contextmanager
def at_the_end() -> Iterator[None]:
    """Tidying up: after an interrupt the gateway may be broken, and that must not hide the interrupt."""
    with contextlib.suppress(PySparkException, Py4JError, OSError):
        yield


def _refuse_other(asked: str | None, there: str | None, whose: str) -> None:
    if asked is not None and asked != there:
        raise OptionError(f"the master {asked!r} is not the one {whose} ({there}); leave --master out")


@contextlib.contextmanager
def _log_file() -> Iterator[Path]:
    """Where the JVM logs to; the file is kept, and named, only where a job ends for a reason of Spark's own."""
    handle, name = tempfile.mkstemp(prefix="hamlet-spark-", suffix=".log")
    os.close(handle)
    path = Path(name)
    try:
        yield path
    except JobError as error:
        raise JobError(f"{error}\nSpark's log is in {path}") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(_warehouse(path), ignore_errors=True)
    path.unlink(missing_ok=True)


def _warehouse(log: Path) -> Path:
    """Where a session that is started here would keep tables of its own; removed at the end."""
    return log.with_suffix(".warehouse")


def _started(master: str, log: Path, settings: Mapping[str, str]) -> SparkSession:
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("hamlet")
    conf.set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.sql.warehouse.dir", str(_warehouse(log)))  # none is left in the working directory
    conf.set("spark.sql.session.timeZone", "UTC")  # rows must not depend on where the job runs
    conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))  # a tenth less work than with 10,000
    if _LOCAL.fullmatch(master):
        conf.set("spark.ui.enabled", "false")  # no port, a faster start
        conf.set("spark.driver.host", "127.0.0.1")  # a machine whose own name does not resolve can run it too
        conf.set("spark.driver.bindAddress", "127.0.0.1")
        # Workers run this very interpreter and find this very package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        here = str(Path(__file__).resolve().parent.parent)
        conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join([here, *_python_path()]))
    for name, value in settings.items():
        conf.set(name, value)
    try:
        with log.open("ab") as sink:
            gateway = launch_gateway(conf, {"stdout": sink, "stderr": sink})  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError) as error:
        said = str(error) if isinstance(error, Py4JError) else log.read_text("utf-8", "replace")
        if "Could not parse Master URL" in said or "Master must either be" in said:
            raise OptionError(f"Spark has no master {master!r}; try local[*], spark://HOST:PORT or yarn") from None
        lines = [line for line in said.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
        raise JobError(f"Spark does not start: {lines[-1] if lines else _brief(str(error))}") from None
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's own handler talks to a JVM that is being asked
    return SparkSession(context)


@contextlib.contextmanager
def _quiet_gateway() -> Iterator[None]:
    """Nothing of the gateway's own log, which speaks of every interrupt."""

    def is_other(record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname

    logging.getLogger().addFilter(is_other)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(is_other)


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


# ------------------------------------------------------------------------------------------------- progress


@contextlib.contextmanager
def watched(context: SparkContext, what: str, progress: Progress | None) -> Iterator[None]:
    """Tell `progress` several times a second how many tasks of the running stages are done."""
    if progress is None:
        yield
        return
    done = threading.Event()
    tracker = context.statusTracker()

    def look() -> None:
        while not done.wait(_POLL_SECONDS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            found = [stage for stage in stages if stage is not None]
            progress(what, sum(stage.numCompletedTasks for stage in found), sum(stage.numTasks for stage in found))

    thread = threading.Thread(target=look, name="hamlet-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
