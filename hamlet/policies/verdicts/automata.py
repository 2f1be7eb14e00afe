"""True or false for every time-point of each key: batches of time-points through the automaton of a policy.

Every key's stream has all time-points; at those where nothing of the key happens no atom is true but comparisons of the
key. Until a key comes its stream is the default one (there is one for each way in which the comparisons may come out),
so it takes over from there. Where every time-point has a verdict, those from before are given with its first event;
where equivalent ones are told, its rows begin with the time-points that were kept then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hamlet.arrays import np, npt, pa
from hamlet.errors import MemoryLimitError, UnsupportedError, option
from hamlet.input.buffers import from_numpy, to_numpy
from hamlet.output.plain_rows import PlainRows, Rows
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.analysis.propositions import Skeleton, skeleton
from hamlet.policies.analysis.rewriting import stripped
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.rows import array_of
from hamlet.policies.syntax.columns import VERDICTS, column_names
from hamlet.policies.syntax.formula import Formula, Not
from hamlet.policies.syntax.signature import Signature
from hamlet.policies.verdicts._anchored import AnchoredFormula, AnchoredStream, fits
from hamlet.policies.verdicts._automaton import Automaton, Stream
from hamlet.policies.verdicts.atoms import Condition, EvaluatedAtom, Hits, atom_of
from hamlet.policies.verdicts.modes import Mode
from hamlet.policies.verdicts.progression import Progression
from hamlet.policies.verdicts.undecided import Waiting
from hamlet.runtime.sizes import Size, bytes_of, size_text

_MOST_CONDITIONS = 6  # comparisons of the key; the default stream is kept for each way in which they may come out
_MOST_STEPS = 1 << 12  # time-points between two looks at what the automaton takes
_MOST_STATES = 1 << 24  # bytes that its states, steps and expressions may take
_MOST_ROWS = 1 << 22  # rows made at once; with many keys fewer time-points are taken

_POINT_BYTES = 17  # of a time-point that is not decided, or of a row
_UNSEEN = 1 << 20  # bytes that streams may have taken since somebody looked

Key = tuple[Any, ...]
AnyStream = AnchoredStream | Stream


def _nothing() -> None:
    """Nobody asks how much is kept."""


def machine_of(found: Skeleton, mode: Mode) -> AnchoredFormula | Automaton:
    """What gives a formula's verdicts: an automaton only where its futures nest, or are many."""
    if fits(found.nodes):
        return AnchoredFormula(found.nodes, mode)
    return Automaton(Progression(found, mode), len(found.atoms))


class Verdicts:
    """Verdicts of one policy.

    Parameters
    ----------
    formula : Formula
        An unbounded ALWAYS at its head, and FORALLs below it, are left out: the verdict says whether the rule holds.
    signature : Signature
    mode : {'all', 'local', 'global'}
        A verdict for every time-point; or for the earliest of those that must come out the same, of one time-stamp or
        of any.
    per_second : int
        Ticks of the stream's time.
    negate : bool
        Whether verdicts are of the negation; for a rule it changes nothing.
    arrow : bool
        Whether rows are Arrow's; else they are plain ones (`hamlet.output.plain_rows`) where there is no key.

    Attributes
    ----------
    key : tuple of str
        The free variables.
    types : dict of str to pyarrow.DataType
        Theirs.
    skeleton : Skeleton
    machine : AnchoredFormula or Automaton
        What all streams share.
    atoms, waiting
        What finds where atoms are true, and what has been found of time-points that are not decided.
    points : int
        Time-points that streams have taken.
    defaults : dict of int to stream
        By the bits of the conditions that are true, the stream of keys that have not come. A closed formula has one.
    streams : dict of tuple to (stream, int)
        By key, each with the bits of the conditions that are true.
    history : dict of int to list
        Rows of `defaults` so far, where every time-point has one: those of each key to come.

    Raises
    ------
    UnsupportedError
        If the policy is not propositional for each key.
    """

    def __init__(
        self,
        formula: Formula,
        signature: Signature,
        mode: Mode,
        *,
        per_second: int = 1,
        negate: bool = False,
        arrow: bool = True,
    ) -> None:
        self._arrow = arrow
        body, is_policy = stripped(formula)
        found = skeleton(Not(body) if negate and not is_policy else body, per_second)
        self.mode = mode
        self.key = found.key
        self.atoms = [atom_of(each, signature, found.key, per_second) for each in found.atoms]
        self.waiting = Waiting(len(self.atoms))
        self.skeleton = found
        self.machine = machine_of(found, mode)
        self._conditions = [(1 << place, atom) for place, atom in enumerate(self.atoms) if isinstance(atom, Condition)]
        if self.key and len(self._conditions) > _MOST_CONDITIONS:
            raise UnsupportedError(
                f"verdicts are for policies of at most {_MOST_CONDITIONS} comparisons of the key; this one has more\n"
                "hint: leave out verdicts (--verdicts); rows are then what satisfies the policy"
            )
        ways = self._ways() if self.key else [self._bits(())]
        self.defaults: dict[int, AnyStream] = {bits: self.machine.stream() for bits in ways}
        self.points = 0
        self.streams: dict[Key, tuple[AnyStream, int]] = {}
        self.history: dict[int, list[Any]] = {bits: [] for bits in ways}
        self._most_states = _MOST_STATES
        self._new: dict[Key, list[Any]] = {}  # keys that have just come, with the rows from before
        self.types = self._key_types()
        unbound = [name for name in self.key if name not in self.types]
        if unbound:
            raise UnsupportedError(
                f"verdicts for every time-point need a predicate that binds the key, and none binds {unbound[0]}\n"
                "hint: leave out verdicts (--verdicts); rows are then what satisfies the policy"
            )

    def _ways(self) -> list[int]:
        """All sets of conditions, as bits."""
        found = [0]
        for bit, _ in self._conditions:
            found += [each | bit for each in found]
        return found

    def _bits(self, key: Key) -> int:
        """The conditions that are true for a key."""
        return sum(bit for bit, condition in self._conditions if condition.holds(key))

    @property
    def progression(self) -> Progression:
        """That of the automaton."""
        assert isinstance(self.machine, Automaton)
        return self.machine.progression

    def _key_types(self) -> dict[str, pa.DataType]:
        found: dict[str, pa.DataType] = {}
        for atom in self.atoms:
            found |= atom.types
        return found

    @property
    def names(self) -> list[str]:
        """The columns of the rows."""
        same = [] if self.mode == "all" else ["same_as_time", "same_as_offset"]
        return ["time", "offset", *column_names(self.key, VERDICTS), "verdict", *same]

    def schema(self, time_type: pa.DataType | None) -> pa.Schema:
        """The columns of the rows, with their types."""
        time = pa.int64() if time_type is None else time_type
        same = [] if self.mode == "all" else [time, pa.int64()]
        types = [time, pa.int64(), *(self.types[name] for name in self.key), pa.bool_(), *same]
        return pa.schema(list(zip(self.names, types, strict=True)))

    @property
    def predicates(self) -> set[tuple[str, int]]:
        """Name and arity of the predicates that are read."""
        return {key for atom in self.atoms for key in atom.predicates}

    @property
    def nbytes(self) -> int:
        """Bytes held for the streams of all keys, and for the automaton."""
        history = sum(_POINT_BYTES * len(rows[0]) for parts in self.history.values() for rows in parts)
        evaluated = sum(each.nbytes for each in self.atoms if isinstance(each, EvaluatedAtom))
        return self.held + history + 300 * len(self.streams) + self.machine.nbytes + evaluated + self.waiting.nbytes

    @property
    def kept_rows(self) -> int:
        """Time-points that wait, and streams of keys."""
        return self.waiting.points - self.waiting.first + len(self.streams)

    @property
    def held(self) -> int:
        """Bytes held for the streams alone."""
        defaults = sum(each.nbytes for each in self.defaults.values())
        return defaults + sum(each.nbytes for each, _ in self.streams.values())

    def adopt(self, key: Key, stream: AnyStream) -> None:
        """Have a key's stream, which comes from a save."""
        self.streams[key] = stream, self._bits(key)

    @property
    def keys(self) -> int:
        """How many keys have been met."""
        return len(self.streams)

    def feed(
        self, chunk: LogChunk, time_type: pa.DataType | None, check: Callable[[], None] = _nothing
    ) -> Iterator[Rows]:
        """Read time-points, and give the rows that they decide.

        Parameters
        ----------
        chunk : LogChunk
            Behind all chunks before it; times in ticks.
        time_type : pyarrow.DataType, optional
            Of the time in rows; int64 by default.
        check : callable
            Called whenever some of them have been taken.
        """
        self.waiting.add(chunk.times, [atom.hits(chunk) for atom in self.atoms])
        decided = [atom.decided for atom in self.atoms if isinstance(atom, EvaluatedAtom)]
        yield from self._decide(*self.waiting.take(min(decided, default=self.waiting.points)), time_type, check)

    def _decide(
        self,
        times: npt.NDArray[np.int64],
        hits: Sequence[Hits],
        time_type: pa.DataType | None,
        check: Callable[[], None] = _nothing,
    ) -> Iterator[Rows]:
        """Go on over time-points at which the truth of all atoms is known."""
        if not self.key:
            bits = np.zeros(len(times), np.int32)
            for place, (points, _) in enumerate(hits):
                bits[points] |= 1 << place
            ((always, stream),) = self.defaults.items()
            bits |= np.int32(always)
            step = _MOST_STEPS if isinstance(self.machine, Automaton) else _MOST_ROWS
            for begin in range(0, len(times), step):
                stream.feed(times[begin : begin + step], bits[begin : begin + step])
                self._forget_states()
                yield from self._rows({(): stream}, time_type)
                check()
            return
        step = max(256, _MOST_ROWS // max(1, len(self.streams)))
        if isinstance(self.machine, Automaton):
            step = min(step, _MOST_STEPS)
        by_key = self._by_key(hits)
        for begin in range(0, len(times), step):
            yield from self._feed_keys(times[begin : begin + step], begin, by_key, time_type, check)
            self._forget_states()
            check()

    def _forget_states(self) -> None:
        """Give up the automaton's states, steps and expressions that nobody is in, once they take much memory."""
        if not isinstance(self.machine, Automaton) or self.machine.nbytes < self._most_states:
            return
        streams = (*self.defaults.values(), *(one for one, _ in self.streams.values()))
        moving = [each for each in streams if isinstance(each, Stream)]
        states = sorted({each.state for each in moving})
        described = self.progression.described(states)
        fresh = Automaton(Progression(self.skeleton, self.mode), len(self.skeleton.atoms))
        places = dict(zip(states, fresh.progression.known(described), strict=True))
        for each in moving:
            each.move(fresh, places[each.state])
        self.machine = fresh
        self._most_states = max(_MOST_STATES, 4 * fresh.nbytes)

    def _by_key(self, hits: Sequence[Hits]) -> dict[Key, list[Any]]:
        """For each key of a chunk its time-points with true atoms: (places, bits), in parts."""
        found: dict[Key, list[Any]] = {}
        for place, (points, columns) in enumerate(hits):
            if not len(points):
                continue
            keys, codes = _coded(columns)
            order = np.argsort(codes, kind="stable")
            ends = np.searchsorted(codes[order], np.arange(1, len(keys) + 1))
            begin = 0
            for key, end in zip(keys, ends.tolist(), strict=True):
                found.setdefault(key, []).append((np.sort(points[order[begin:end]]), 1 << place))
                begin = end
        return found

    def _feed_keys(
        self,
        times: npt.NDArray[np.int64],
        begin: int,
        by_key: Mapping[Key, list[Any]],
        time_type: pa.DataType | None,
        check: Callable[[], None],
    ) -> Iterator[Rows]:
        """Feed some time-points, which begin at a place of their chunk, to the streams of all keys."""
        here: dict[Key, npt.NDArray[np.int32]] = {}
        for key, parts in by_key.items():
            for points, bit in parts:
                first, last = np.searchsorted(points, (begin, begin + len(times))).tolist()
                if first < last:
                    bits = here.setdefault(key, np.zeros(len(times), np.int32))
                    bits[points[first:last] - begin] |= bit
        self._fork(times, here, check)
        nothing = np.zeros(len(times), np.int32)
        looks = 1 + _UNSEEN // (1 + _POINT_BYTES * len(times))
        for number, (key, (stream, always)) in enumerate(self.streams.items(), 1):
            if stream.points < self.points:
                stream.feed(times, here.get(key, nothing) | np.int32(always))
            if number % looks == 0:
                check()
        yield from self._rows({key: stream for key, (stream, _) in self.streams.items()}, time_type)

    def _fork(
        self, times: npt.NDArray[np.int64], here: Mapping[Key, npt.NDArray[np.int32]], check: Callable[[], None]
    ) -> None:
        """Feed the default stream; each new key takes over from it at the first time-point with an event of it."""
        new = [(int(np.argmax(bits != 0)), key) for key, bits in here.items() if key not in self.streams]
        nothing = np.zeros(len(times), np.int32)
        done = unseen = 0
        for first, key in sorted(new, key=lambda each: each[0]):
            self._feed_nobody(times[done:first], nothing[done:first])
            done = first
            always = self._bits(key)
            stream = self.defaults[always].copy()
            stream.feed(times[first:], here[key][first:] | np.int32(always))
            self.streams[key] = stream, always
            self._new[key] = list(self.history[always])
            unseen += stream.nbytes
            if unseen > _UNSEEN:
                check()
                unseen = 0
        self._feed_nobody(times[done:], nothing[done:])

    def _feed_nobody(self, times: npt.NDArray[np.int64], bits: npt.NDArray[np.int32]) -> None:
        self.points += len(times)
        for always, stream in self.defaults.items():
            stream.feed(times, bits | np.int32(always))
            rows = stream.take()
            if self.mode == "all" and len(rows[0]):
                self.history[always].append(rows)

    def close(self, time_type: pa.DataType | None, open_end: bool = False) -> Iterator[Rows]:
        """The rows that the end of the input decides; with an open end there are none."""
        if not open_end:
            nothing = np.zeros(0, np.int64)
            rest = [atom.close() if isinstance(atom, EvaluatedAtom) else (nothing, []) for atom in self.atoms]
            self.waiting.add(nothing, rest)
            yield from self._decide(*self.waiting.take(self.waiting.points), time_type)
        own = dict(self.streams)
        if not self.key:
            own[()] = next((stream, always) for always, stream in self.defaults.items())
        if not open_end:
            for stream, always in own.values():
                stream.finish(always)
        streams = {key: stream for key, (stream, _) in own.items()}
        yield from self._rows(streams, time_type)

    def _rows(self, streams: Mapping[Key, AnyStream], time_type: pa.DataType | None) -> Iterator[Rows]:
        """The rows of all streams since the last call, by time-point and then by key."""
        taken = [(key, stream.take()) for key, stream in streams.items()]
        taken += [(key, rows) for key, history in self._new.items() for rows in history]
        taken = [each for each in taken if len(each[1][0])]
        self._new = {}
        if not taken:
            return
        if len(taken) > 1:
            taken.sort(key=lambda each: each[0])
        parts = list(zip(*(rows for _, rows in taken), strict=True))
        times, offsets, verdicts = (np.concatenate(part) for part in parts[:3])
        keys = np.repeat(np.arange(len(taken)), [len(rows[0]) for _, rows in taken])
        order = np.lexsort((keys, offsets, times)) if len(taken) > 1 else slice(None)
        verdicts = verdicts[order]
        same = verdicts == 2 if self.mode != "all" else None
        told = [times[order], offsets[order], verdicts == 1]
        missing = [None, None, same]
        if same is not None:
            told += [np.concatenate(part)[order] for part in parts[3:]]
            missing += [~same, ~same]
        if not (self._arrow or self.key or time_type is not None):
            nulls = {name: where for name, where in zip(self.names, missing, strict=True) if where is not None}
            yield PlainRows(dict(zip(self.names, told, strict=True)), nulls)
            return
        columns = [from_numpy(values, missing=where) for values, where in zip(told, missing, strict=True)]
        if time_type is not None:
            from hamlet.input.moments import shown  # brings in all forms of times

            columns[::3] = [shown(ticks, time_type) for ticks in columns[::3]]
        keys_told = []
        for place, name in enumerate(self.key):
            values = array_of([key[place] for key, _ in taken], self.types[name], name)
            keys_told.append(values.take(from_numpy(keys[order])))
        yield pa.RecordBatch.from_arrays([*columns[:2], *keys_told, *columns[2:]], names=self.names)


class VerdictRunner:
    """The verdicts of some policies over one stream, as batches of rows.

    Parameters
    ----------
    policies : sequence of Policy
        With equal signatures.
    mode : {'all', 'local', 'global'}
    time_type : pyarrow.DataType, optional
        Of the time in rows; int64 by default.
    per_second : int
        Ticks of the stream's time.
    negate, open_end : bool
    max_memory : int, str or None
        The most that may be kept between chunks.
    arrow : bool
        As of `Verdicts`.

    Attributes
    ----------
    predicates : frozenset of (str, int)
        Name and arity of the predicates that are read.
    points : int
        Time-points so far.
    verdicts : list of Verdicts
        Of each policy.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        mode: Mode,
        time_type: pa.DataType | None,
        per_second: int,
        *,
        negate: bool = False,
        open_end: bool = False,
        max_memory: Size | None = None,
        arrow: bool = True,
    ) -> None:
        self.verdicts = [
            Verdicts(each.formula, each.signature, mode, per_second=per_second, negate=negate, arrow=arrow)
            for each in policies
        ]
        self._names = [each.name for each in policies]
        self._time_type = time_type
        self._open_end = open_end
        self._limit = bytes_of(max_memory)
        self.points = 0
        self.predicates = frozenset(key for each in self.verdicts for key in each.predicates)

    def feed(
        self,
        chunks: Sequence[LogChunk],
        bound: int | None,  # noqa: ARG002
        beside: int = 0,
    ) -> Iterator[tuple[int, Rows]]:
        """The rows that more time-points decide, each with the place of its policy.

        A promise of time (`bound`) decides nothing here: what it would decide comes with the next time-point.
        """
        for chunk in chunks:
            self.points += len(chunk.times)
            for place, each in enumerate(self.verdicts):
                for rows in each.feed(chunk, self._time_type, partial(self._check_memory, beside)):
                    yield place, rows
        self._check_memory(beside)

    def _check_memory(self, beside: int) -> None:
        """Raise MemoryLimitError where more is kept than may be."""
        if self._limit is not None and self.nbytes + beside > self._limit:
            most = max(range(len(self.verdicts)), key=lambda place: self.verdicts[place].nbytes)
            raise MemoryLimitError(
                f"the run stops, since it needs more memory than its limit, {size_text(self._limit)}; policy "
                f"'{self._names[most]}' holds the most, {size_text(self.verdicts[most].nbytes)}\n"
                f"hint: {option('verdicts', 'equivalent')} holds less, or raise the limit ({option('max_memory')})"
            )

    @property
    def names(self) -> list[list[str]]:
        """The columns of each policy's rows."""
        return [each.names for each in self.verdicts]

    @property
    def schemas(self) -> list[pa.Schema]:
        """Of each policy's rows."""
        return [each.schema(self._time_type) for each in self.verdicts]

    def run(self, chunks: Iterable[LogChunk]) -> Iterator[tuple[int, Rows]]:
        """The rows of all policies over a whole input, each with the place of its policy, as they are decided."""
        for chunk in chunks:
            yield from self.feed([chunk], None)
        yield from self.close()

    def close(self) -> Iterator[tuple[int, Rows]]:
        """The rows that the end of the stream decides; none where it is open."""
        for place, each in enumerate(self.verdicts):
            for rows in each.close(self._time_type, self._open_end):
                yield place, rows

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between chunks."""
        return sum(each.nbytes for each in self.verdicts)

    @property
    def kept_rows(self) -> int:
        """Time-points that wait, and streams of keys."""
        return sum(each.kept_rows for each in self.verdicts)


def _coded(columns: Sequence[pa.Array]) -> tuple[list[Key], npt.NDArray[np.int64]]:
    """The distinct rows of some columns, and for each row the number of its value."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        coded = column.dictionary_encode()
        codes = codes * max(1, len(coded.dictionary)) + to_numpy(coded.indices).astype(np.int64)
        _, codes = np.unique(codes, return_inverse=True)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    places = from_numpy(first)
    return list(zip(*(column.take(places).to_pylist() for column in columns), strict=True)), codes
