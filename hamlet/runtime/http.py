"""A run looked at from outside: numbers for Prometheus, its health, and a page that shows it live; all is read-only."""

from __future__ import annotations

import html
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hamlet.errors import OptionError, UnsupportedError
from hamlet.runtime.drive import Driver
from hamlet.runtime.tenant import Pieces

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SHOWN = 50  # rows of the page
_PIECE = 5  # rows of a batch that the page may show
_EVERY = 1.0  # seconds between two looks of the page
_PAGE = Path(__file__).parents[1] / "pages" / "templates" / "live.html"


class Watch:
    """What is known of a run.

    Parameters
    ----------
    driver : Driver
        Its rows are seen by `see`.

    Raises
    ------
    UnsupportedError
        If prometheus_client is not installed.
    """

    def __init__(self, driver: Driver) -> None:
        try:
            import prometheus_client as prometheus  # needed with --http only
        except ImportError:
            raise UnsupportedError("--http needs prometheus_client\nhint: pip install 'hamlet[http]'") from None
        self._driver = driver
        self._prometheus = prometheus
        self._registry = prometheus.CollectorRegistry()
        self._latency = prometheus.Histogram(
            "hamlet_latency_seconds",
            "From reading what decides a row to having written it.",
            ["name"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)
        self._texts: dict[tuple[int, int], Any] = {}
        self._last: deque[tuple[float, str, str]] = deque(maxlen=_SHOWN)
        self._lag = 0.0
        self._started = time.monotonic()

    def see(self, place: int, pieces: Pieces, seconds: float) -> None:
        """Rows were written, so many seconds after what decided them was read."""
        self._lag = seconds
        tenant = self._driver.tenants[place]
        for part, rows in pieces:
            name = tenant.names[part]
            count = rows.num_rows if hasattr(rows, "num_rows") else len(rows)
            histogram = self._latency.labels(name)
            histogram.observe(seconds)
            if hasattr(rows, "slice"):
                key = (place, part)
                if key not in self._texts:
                    self._texts[key] = tenant.row_text(part, "json", lead=False)
                last = rows.slice(max(0, count - _PIECE))
                texts = self._texts[key].lines(last).splitlines()
            else:
                texts = tenant.row_text(part, "json", lead=False).lines(rows).splitlines()[-_PIECE:]
            self._last.extend((time.time(), name, text) for text in texts)

    def collect(self) -> Iterator[Any]:
        """The numbers, for Prometheus."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        driver = self._driver
        rows = CounterMetricFamily("hamlet_rows", "Rows written.", labels=["name"])
        kept = GaugeMetricFamily("hamlet_kept_bytes", "What is kept between events.", labels=["name"])
        for tenant, counts in zip(driver.tenants, driver.meter.rows_of, strict=True):
            for name, count in zip(tenant.names, counts, strict=True):
                rows.add_metric([name], count)
            kept.add_metric([",".join(tenant.names)], tenant.kept_bytes)
        yield CounterMetricFamily("hamlet_events", "Events read.", value=driver.events)
        yield rows
        yield GaugeMetricFamily("hamlet_lag_seconds", "From reading events to having written their rows.", self._lag)
        yield kept
        yield CounterMetricFamily("hamlet_late_events", "Events that came too late.", value=driver.late_events)
        yield CounterMetricFamily("hamlet_bad_rows", "Lines that are no events.", value=driver.bad.dropped.rows)

    def metrics(self) -> bytes:
        """The numbers, in Prometheus' text format."""
        return self._prometheus.generate_latest(self._registry)

    def now(self) -> dict[str, Any]:
        """What the page shows."""
        driver = self._driver
        return {
            "seconds": time.monotonic() - self._started,
            "events": driver.events,
            "late": driver.late_events,
            "bad": driver.bad.dropped.rows,
            "lag": self._lag,
            "kept": sum(each.kept_bytes for each in driver.tenants),
            "time": next((each.last_time for each in driver.tenants if each.last_time is not None), None),
            "rows": [
                [name, count]
                for each, counts in zip(driver.tenants, driver.meter.rows_of, strict=True)
                for name, count in zip(each.names, counts, strict=True)
            ],
            "last": list(reversed(self._last)),
        }


class Server:
    """Serves a `Watch`.

    Parameters
    ----------
    address : str
        ``HOST:PORT``; without a host, the loopback address.
    watch : Watch
    title : str

    Raises
    ------
    OptionError
        If the address is none, or in use.
    """

    def __init__(self, address: str, watch: Watch, title: str) -> None:
        host, _, port = address.rpartition(":")
        host = host or "127.0.0.1"
        if not port.isdecimal() or int(port) > 65_535:
            raise OptionError(f"--http is {address!r}; it must be HOST:PORT, such as 127.0.0.1:8080")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        page = _PAGE.read_text(encoding="utf-8").replace("{{title}}", html.escape(title)).encode()
        handler = type("Handler", (_Handler,), {"watch": watch, "page": page, "hosts": (*_LOCAL, host.lower())})
        kind = type("Listener", (_Listener,), {"address_family": family})
        try:
            self._server = kind((host.strip("[]"), int(port)), handler)
        except OSError as error:
            raise OptionError(f"cannot serve at {address}: {error.strerror or error}") from None
        self.port = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        self.over = threading.Event()
        super().__init__(*arguments)

    def handle_error(self, *_: Any) -> None:
        """Whoever asked has gone away."""


class _Handler(BaseHTTPRequestHandler):
    watch: Watch
    page: bytes
    hosts: Sequence[str]
    server_version, sys_version = "hamlet", ""

    def handle_one_request(self) -> None:
        """Answer GET and HEAD, and refuse whatever else is asked."""
        self.raw_requestline = self.rfile.readline(65_537)
        if not self.raw_requestline:
            self.close_connection = True
            return
        if not self.parse_request():
            return
        self.close_connection = True
        if _host(self.headers.get("Host", "")) not in self.hosts:
            self._answer(HTTPStatus.FORBIDDEN, b"this Host is not served\n")
        elif self.command not in ("GET", "HEAD"):
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n", Allow="GET, HEAD")
        else:
            self._get(self.path.split("?", 1)[0])
        self.wfile.flush()

    def _get(self, path: str) -> None:
        if path == "/":
            self._answer(HTTPStatus.OK, self.page, "text/html; charset=utf-8")
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, self.watch.metrics(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/health":
            self._answer(HTTPStatus.OK, b"ok\n")
        elif path == "/events":
            self._stream()
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is /, /metrics and /health\n")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self._guard()
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _guard(self) -> None:
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")

    def _stream(self) -> None:
        """What happens, as server-sent events."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self._guard()
        self.end_headers()
        over: threading.Event = self.server.over  # type: ignore[attr-defined]
        while self.command != "HEAD":
            self.wfile.write(f"data: {json.dumps(self.watch.now())}\n\n".encode())
            self.wfile.flush()
            if over.wait(_EVERY):
                return

    def log_message(self, format: str, *_: Any) -> None:
        """Requests are not told."""


def _host(header: str) -> str:
    """A Host header without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[: text.find("]") + 1]
    return text.rsplit(":", 1)[0] if ":" in text else text
