r"""An asyncio service: events come as JSON lines over TCP, result rows go back as windows close.

::

    python examples/service.py --port 7411 &
    printf '%s\n' '{"time": 1, "type": "Up"}' '{"time": 2, "type": "Down"}' | nc localhost 7411

Every connection is a stream of its own with an engine of its own. Lines that arrive together are pushed together: a
batch costs less per event than one event at a time, and any split gives the same rows. What is wrong with a line is
said to its sender, and the stream goes on without that line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import hamlet

WORKLOAD = """
falls: RETURN COUNT(*), LOG2(COUNT(*)) AS bits PATTERN SEQ(Up, Down+) WITHIN 1 min;
quiet: RETURN COUNT(*) PATTERN SEQ(Up, NOT Down) WITHIN 1 min;
"""


class Stream:
    """The events of one connection.

    Parameters
    ----------
    workload : hamlet.Workload
    """

    def __init__(self, workload: hamlet.Workload) -> None:
        self._engine = hamlet.Engine(workload, lateness="5 s", late="drop")
        self._rest = b""  # of a line whose end has not come yet

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """What there is to say after some more bytes: result rows, and what is wrong with lines."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        events, answers = [], []
        for line in filter(bytes.strip, lines):
            try:
                events.append(json.loads(line))
            except ValueError as error:
                answers.append({"error": f"{line.decode(errors='replace')}: {error}"})
        try:
            return answers + self._engine.push(events)
        except hamlet.DataError:  # nothing of the push was taken: which event was it?
            return answers + [answer for event in events for answer in self._alone(event)]

    def _alone(self, event: Any) -> list[dict[str, Any]]:
        try:
            return self._engine.push([event])
        except hamlet.DataError as error:
            return [{"error": str(error)}]

    def end(self) -> list[dict[str, Any]]:
        """The rows of windows that were still open."""
        return self._engine.close()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, workload: hamlet.Workload) -> None:
    """One connection, to its end."""

    async def answer(rows: list[dict[str, Any]]) -> None:
        writer.writelines(json.dumps(row).encode() + b"\n" for row in rows)
        await writer.drain()

    stream = Stream(workload)
    try:
        while data := await reader.read(1 << 20):
            # In a thread, so that other connections are served while this one counts.
            await answer(await asyncio.to_thread(stream.take, data))
        await answer(await asyncio.to_thread(stream.end))
    except hamlet.HamletError as error:
        await answer([{"error": str(error)}])
    finally:
        writer.close()


async def start(port: int, host: str = "127.0.0.1") -> asyncio.Server:
    """The listening server; port 0 takes a free one."""
    workload = hamlet.Workload.parse(WORKLOAD)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer, workload)

    return await asyncio.start_server(connected, host, port)


async def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=7411)
    server = await start(parser.parse_args().port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
