"""Tokens of MonPoly's log format, straight into columns.

A scanner keeps, for each predicate, the time-point of every tuple and its fields, column by column. It is given a
buffer, takes the time-points that are complete in it, and says where the first one begins that is not; the caller
gives it again, with what follows. The last time-point is complete where the buffer is the last one.

`hamlet.policies.logs.reader` checks what comes in, and words the mistakes: a mistake is a kind, an offset and a detail.
"""

from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, strtod
from libc.string cimport memchr, memcmp, memcpy

from hamlet.memory.arrays cimport regrown


cdef enum:
    MOST_FIELDS = 256  # of a tuple
    INT = 0
    FLOAT = 1
    STRING = 2
    BOOL = 3
    WIDE = 4    # integers of any size, kept as their digits

cdef struct Column:
    int kind         # INT, FLOAT, STRING, BOOL or WIDE
    char* values     # int64, double, or int32 ends of texts; uint8 for BOOL
    char* text       # the bytes of all texts, one behind the other
    int64_t used     # bytes of `text`
    int64_t room     # bytes that `text` can hold

cdef struct Predicate:
    char* name       # UTF-8, not terminated
    int length       # bytes of `name`
    int arity        # fields of a tuple, 0..MOST_FIELDS
    bint stored      # whether its tuples are kept
    int alike        # the next predicate of this name, -1 at the last
    Column* columns  # [arity]
    int64_t* points  # the time-point of each tuple, counted from the first that is not yet taken; ascending
    int64_t count    # tuples
    int64_t room     # tuples that `points` and the columns can hold

cdef int64_t MOST_TICKS = <int64_t> 1 << 61  # as of time columns: sums of two times fit 64 bits
cdef double[23] TENS
cdef int _place
for _place in range(23):
    TENS[_place] = 10.0 ** _place


class LogMistake(Exception):
    """What is wrong with a log: a kind, an offset in the buffer, and a detail in bytes."""


cdef inline bint is_blank(unsigned char letter) noexcept nogil:
    return letter == 32 or (9 <= letter <= 13)


cdef inline bint is_bare(unsigned char letter) noexcept nogil:
    """Whether a letter may stand in a value without quotes."""
    if letter <= 32 or letter == 127:
        return False
    return not (letter == 34 or letter == 35 or letter == 40 or letter == 41 or letter == 44 or letter == 59
                or letter == 60 or letter == 62 or letter == 64 or letter == 123 or letter == 125)


cdef inline int64_t _behind_quotes(const unsigned char* s, int64_t n, int64_t p) noexcept nogil:
    """The place behind quotes that begin here, n + 1 if they are open; a backslash shields the letter behind it."""
    p += 1
    while p < n and s[p] != 34:
        p += 2 if s[p] == 92 else 1
    return p + 1 if p < n else n + 1


cdef int read_int(const unsigned char* text, int64_t length, int64_t* found) noexcept nogil:
    """A decimal integer; 0 where it is one, 1 where it is none, 2 where it has more than 64 bits."""
    cdef int64_t place = 0
    cdef bint negative = length > 0 and text[0] == 45
    cdef uint64_t value = 0
    cdef bint huge = False
    cdef uint64_t digit
    if negative:
        place = 1
    if place == length:
        return 1
    while place < length:
        digit = <uint64_t> text[place] - 48
        if digit > 9:
            return 1
        if value > 922337203685477580ULL or (value == 922337203685477580ULL and digit > <uint64_t> (7 + negative)):
            huge = True
        value = value * 10 + digit
        place += 1
    if huge:
        return 2
    found[0] = <int64_t> (0 - value) if negative else <int64_t> value
    return 0


cdef int read_float(const unsigned char* text, int64_t length, double* found) noexcept nogil:
    """A number; 0 where it is one, 1 where it is none."""
    cdef int64_t place = 0
    cdef bint negative = length > 0 and text[0] == 45
    cdef uint64_t mantissa = 0
    cdef int digits = 0
    cdef int fraction = 0
    cdef bint point = False
    cdef bint plain = True
    cdef unsigned char letter
    cdef char[64] copy
    cdef char* end
    if negative:
        place = 1
    while place < length and plain:
        letter = text[place]
        if 48 <= letter <= 57:
            mantissa = mantissa * 10 + (letter - 48)
            digits += 1
            fraction += point
        elif letter == 46 and not point:
            point = True
        else:
            plain = False
        place += 1
        plain = plain and digits <= 15
    if plain and digits > 0:
        found[0] = <double> mantissa / TENS[fraction]  # exact: both are whole numbers that a double holds
        if negative:
            found[0] = -found[0]
        return 0
    if length > 63 or length == 0:
        return 1
    memcpy(copy, text, length)
    copy[length] = 0
    found[0] = strtod(copy, &end)
    return 1 if end != copy + length or isnan(found[0]) else 0


cdef class LogScanner:
    """Reads the time-points of a log.

    Parameters
    ----------
    predicates : sequence of (bytes, sequence of int, bool)
        Name, types of the fields (0 int, 1 float, 2 string, 3 bool) and whether the tuples are wanted.
    ignore_unknown : bool
        Whether tuples of other predicates are counted and left out.
    any_order : bool
        Whether time-stamps may go back; else that is a mistake.

    Attributes
    ----------
    unknown : int
        Tuples left out.
    points : int
        Time-points since the last `take`.
    """

    cdef Predicate* predicates
    cdef int count            # predicates
    cdef bint ignore_unknown
    cdef bint any_order
    cdef readonly int64_t unknown
    cdef readonly int64_t commands  # commands to the monitor, ``> ... <``, that were passed over
    cdef int64_t* times       # [points] the time-stamp of each time-point
    cdef readonly int64_t points  # time-points in `times`
    cdef int64_t room         # time-points that `times` can hold
    cdef int64_t last         # the latest time-stamp
    cdef bint begun           # whether there is a latest time-stamp
    cdef int group            # the last predicate looked up: the first of its name
    cdef object mistake       # what went wrong: (kind, offset, detail)

    def __cinit__(self, predicates, bint ignore_unknown=False, bint any_order=False):
        cdef int place, earlier
        self.count = len(predicates)
        self.predicates = <Predicate*> malloc(max(1, self.count) * sizeof(Predicate))
        if self.predicates == NULL:
            raise MemoryError
        for place in range(self.count):  # all of it is freed whatever happens next
            self.predicates[place].name = NULL
            self.predicates[place].columns = NULL
            self.predicates[place].points = NULL
            self.predicates[place].arity = 0
        self.room = 1024
        self.times = <int64_t*> malloc(self.room * sizeof(int64_t))
        if self.times == NULL:
            raise MemoryError
        self.ignore_unknown = ignore_unknown
        self.any_order = any_order
        self.group = -1
        for place, (name, kinds, stored) in enumerate(predicates):
            self._add(place, name, kinds, stored)
            for earlier in range(place - 1, -1, -1):
                if predicates[earlier][0] == name:
                    self.predicates[earlier].alike = place
                    break

    cdef int _add(self, int place, bytes name, kinds, bint stored) except -1:
        cdef Predicate* each = &self.predicates[place]
        cdef const char* letters = name
        cdef int field
        each.length = len(name)
        each.name = <char*> malloc(max(1, each.length))
        each.count, each.room, each.alike, each.stored = 0, 64, -1, stored
        each.points = <int64_t*> malloc(each.room * sizeof(int64_t))
        each.columns = <Column*> malloc(max(1, len(kinds)) * sizeof(Column))
        if each.name == NULL or each.points == NULL or each.columns == NULL:
            raise MemoryError
        memcpy(each.name, letters, each.length)
        for field, kind in enumerate(kinds):
            each.columns[field].kind = kind
            each.columns[field].used, each.columns[field].room = 0, 256
            each.columns[field].values = <char*> malloc(each.room * 8)
            each.columns[field].text = <char*> malloc(256)
            each.arity = field + 1
            if each.columns[field].values == NULL or each.columns[field].text == NULL:
                raise MemoryError
        return 0

    def __dealloc__(self):
        cdef int place, field
        if self.predicates != NULL:
            for place in range(self.count):
                for field in range(self.predicates[place].arity):
                    free(self.predicates[place].columns[field].values)
                    free(self.predicates[place].columns[field].text)
                free(self.predicates[place].columns)
                free(self.predicates[place].points)
                free(self.predicates[place].name)
        free(self.predicates)
        free(self.times)

    def scan(self, const unsigned char[::1] buffer, bint final):
        """Take the complete time-points of a buffer that begins with one, or with blanks.

        Returns
        -------
        int
            The bytes that were taken.

        Raises
        ------
        LogMistake
            With a kind, an offset in the buffer and a detail.
        """
        cdef int64_t taken
        cdef int64_t unknown = self.unknown, last = self.last, commands = self.commands
        cdef bint begun = self.begun
        cdef const unsigned char* letters = &buffer[0] if buffer.shape[0] else NULL
        self.mistake = None
        taken = self._scan(letters, buffer.shape[0], final)
        if taken < 0:
            self.unknown, self.last, self.begun, self.commands = unknown, last, begun, commands
            raise LogMistake(*self.mistake)
        return taken

    def widen(self):
        """Read integers of any size from now on, and forget what `take` has not been given."""
        cdef int place, field
        for place in range(self.count):
            self.predicates[place].count = 0
            for field in range(self.predicates[place].arity):
                self.predicates[place].columns[field].used = 0
                if self.predicates[place].columns[field].kind == INT:
                    self.predicates[place].columns[field].kind = WIDE
        self.points = 0

    cdef int64_t _fail(self, str kind, int64_t offset, bytes detail=b""):
        self.mistake = (kind, offset, detail)
        return -1

    cdef int64_t _scan(self, const unsigned char* s, int64_t n, bint final) except -2:
        cdef int64_t p = 0
        cdef int64_t begin = 0      # where the open time-point begins
        cdef int64_t begin_unknown = self.unknown
        cdef int64_t last = self.last
        cdef bint begun = self.begun
        cdef bint open = False      # whether there is an open time-point
        cdef bint named = False     # whether a predicate's name has come in it
        cdef bint bare = False      # whether no tuple has followed the name
        cdef int64_t name_at = 0
        cdef int64_t start
        cdef int64_t time = 0
        cdef int group = -1
        cdef int wrong
        cdef unsigned char letter
        while True:
            while p < n and is_blank(s[p]):
                p += 1
            if p >= n:
                break
            letter = s[p]
            if letter == 35:  # a comment, to the end of the line
                start = p
                while p < n and s[p] != 10:
                    p += 1
                if p >= n and not final:
                    p = start
                    break
                continue
            if letter == 40:  # (
                if not named:
                    return self._fail("name" if open else "time-point", p, s[p:p + 1])
                p = self._tuple(s, n, p, final, group)
                if p < 0:
                    if p == -1:
                        return -1
                    break
                bare = False
                continue
            if letter == 62:  # a command, which ends a time-point
                if bare and self._empty(group, name_at) < 0:
                    return -1
                open = named = bare = False
                begin, begin_unknown, last, begun = p, self.unknown, self.last, self.begun
                start = p
                while p < n and s[p] != 60:
                    p = _behind_quotes(s, n, p) if s[p] == 34 else p + 1
                if p >= n:
                    if final:
                        return self._fail("command", start, b">")
                    p = begin
                    break
                p += 1
                begin = p
                self.commands += 1
                continue
            if letter == 64 or letter == 59:  # @ or ;
                if bare and self._empty(group, name_at) < 0:
                    return -1
                if letter == 59 and not open:
                    return self._fail("time-point", p, b";")
                open = named = bare = False
                begin, begin_unknown, last, begun = p, self.unknown, self.last, self.begun
                p += 1
                if letter == 59:
                    begin = p
                    continue
                while p < n and is_blank(s[p]):
                    p += 1
                start = p
                while p < n and is_bare(s[p]):
                    p += 1
                if p >= n and not final:
                    p = begin
                    break
                wrong = read_int(s + start, p - start, &time)
                if not wrong and not -MOST_TICKS <= time <= MOST_TICKS:
                    wrong = 2
                if wrong:
                    return self._fail("huge time" if wrong == 2 else "time", start, s[start:p])
                if self.begun and time < self.last and not self.any_order:
                    return self._fail("back", start, b"%d" % self.last)
                self.last, self.begun, open = time, True, True
                if self._point(time) < 0:
                    raise MemoryError
                continue
            if not (is_bare(letter) or letter == 34):
                return self._fail("letter", p, s[p:p + 1])
            if bare and self._empty(group, name_at) < 0:
                return -1
            bare = False
            start = p
            while p < n and is_bare(s[p]):
                p += 1
            if letter == 34 or not open:
                return self._fail("name" if open else "time-point", start, s[start:max(p, start + 1)])
            if p >= n and not final:
                break
            group = self._look_up(s + start, p - start)
            if group < 0 and not self.ignore_unknown:
                return self._fail("unknown", start, s[start:p])
            named, bare, name_at = True, True, start
        if final:
            if bare and self._empty(group, name_at) < 0:
                return -1
            return n
        if open:
            self._forget_last()
            self.unknown, self.last, self.begun = begin_unknown, last, begun
            return begin
        return p

    cdef int _look_up(self, const unsigned char* name, int64_t length) noexcept:
        """The first predicate of a name, -1 where there is none."""
        cdef int place
        cdef Predicate* each
        if self.group >= 0:
            each = &self.predicates[self.group]
            if each.length == length and memcmp(each.name, name, length) == 0:
                return self.group
        for place in range(self.count):
            each = &self.predicates[place]
            if each.length == length and memcmp(each.name, name, length) == 0:
                self.group = place
                return place
        return -1

    cdef bytes _name(self, int place):
        return self.predicates[place].name[:self.predicates[place].length]

    cdef int64_t _empty(self, int group, int64_t at) except -2:
        """A name without a tuple behind it: the empty one."""
        cdef int first = group
        if group < 0:
            self.unknown += 1
            return 0
        while group >= 0 and self.predicates[group].arity:
            group = self.predicates[group].alike
        if group < 0:
            return self._fail("arity", at, b"0 " + self._name(first))
        if self.predicates[group].stored and self._append(group) < 0:
            raise MemoryError
        return 0

    cdef int64_t _tuple(self, const unsigned char* s, int64_t n, int64_t p, bint final, int group) except -3:
        """Take a tuple that begins at a parenthesis: where it ends, -1 at a mistake, -2 if it is not all there."""
        cdef int64_t[MOST_FIELDS] starts
        cdef int64_t[MOST_FIELDS] lengths
        cdef bint[MOST_FIELDS] quoted
        cdef int fields = 0
        cdef int64_t begin = p
        cdef int64_t start
        cdef int wanted = group
        p += 1
        while p < n and is_blank(s[p]):
            p += 1
        if p < n and s[p] == 41:
            p += 1
        else:
            while True:
                while p < n and is_blank(s[p]):
                    p += 1
                if p >= n:
                    return self._fail("open", begin) if final else -2
                if fields == MOST_FIELDS:
                    return self._fail("long", begin)
                start = p
                if s[p] == 34:
                    p = _behind_quotes(s, n, p)
                    if p > n:
                        return self._fail("quote", start) if final else -2
                    starts[fields], lengths[fields], quoted[fields] = start + 1, p - start - 2, True
                else:
                    while p < n and is_bare(s[p]):
                        p += 1
                    if p == start:
                        return self._fail("field", p, s[p:p + 1])
                    starts[fields], lengths[fields], quoted[fields] = start, p - start, False
                fields += 1
                while p < n and is_blank(s[p]):
                    p += 1
                if p >= n:
                    return self._fail("open", begin) if final else -2
                p += 1
                if s[p - 1] == 41:
                    break
                if s[p - 1] != 44:
                    return self._fail("comma", p - 1, s[p - 1:p])
        if group < 0:
            self.unknown += 1
            return p
        while wanted >= 0 and self.predicates[wanted].arity != fields:
            wanted = self.predicates[wanted].alike
        if wanted < 0:
            return self._fail("arity", begin, b"%d " % fields + self._name(group))
        if self._fields(s, wanted, starts, lengths, quoted) < 0:
            return -1
        return p

    cdef int64_t _fields(
        self, const unsigned char* s, int place, int64_t* starts, int64_t* lengths, bint* quoted
    ) except -2:
        """Keep the fields of a tuple."""
        cdef Predicate* each = &self.predicates[place]
        cdef Column* column
        cdef int field, wrong
        cdef int64_t number = 0, length
        cdef double real = 0
        if self._append(place) < 0:
            raise MemoryError
        cdef int64_t row = each.count - 1
        for field in range(each.arity):
            column = &each.columns[field]
            length = lengths[field]
            if column.kind == INT:
                wrong = read_int(s + starts[field], length, &number)
                if wrong:
                    return self._fail("huge" if wrong == 2 else "int", starts[field],
                                      s[starts[field]:starts[field] + length])
                (<int64_t*> column.values)[row] = number
            elif column.kind == FLOAT:
                if read_float(s + starts[field], length, &real):
                    return self._fail("float", starts[field], s[starts[field]:starts[field] + length])
                (<double*> column.values)[row] = real
            elif column.kind == BOOL:
                if length == 4 and memcmp(s + starts[field], b"true", 4) == 0:
                    column.values[row] = 1
                elif length == 5 and memcmp(s + starts[field], b"false", 5) == 0:
                    column.values[row] = 0
                else:
                    return self._fail("bool", starts[field], s[starts[field]:starts[field] + length])
            else:
                if column.kind == WIDE and read_int(s + starts[field], length, &number) == 1:
                    return self._fail("int", starts[field], s[starts[field]:starts[field] + length])
                if self._text(column, s + starts[field], length, quoted[field]) < 0:
                    raise MemoryError
                (<int32_t*> column.values)[row] = <int32_t> column.used
        if not each.stored:
            each.count = 0
            for field in range(each.arity):
                each.columns[field].used = 0
        return 0

    cdef int _text(self, Column* column, const unsigned char* letters, int64_t length, bint quoted) noexcept:
        cdef int64_t place
        cdef bint escaped = False
        cdef int64_t room = column.room
        if column.used + length > room:
            while column.used + length > room:
                room *= 2
            if not regrown(<void**>&column.text, room):
                return -1
            column.room = room
        if not quoted or memchr(letters, 92, length) == NULL:
            memcpy(column.text + column.used, letters, length)
            column.used += length
            return 0
        for place in range(length):  # a backslash before a quote or another one is not part of the text
            if letters[place] == 92 and not escaped and place + 1 < length and letters[place + 1] in (34, 92):
                escaped = True
                continue
            column.text[column.used] = <char> letters[place]
            column.used += 1
            escaped = False
        return 0

    cdef int _append(self, int place) noexcept:
        """Room for one more tuple, at the last time-point."""
        cdef Predicate* each = &self.predicates[place]
        cdef int field
        if each.count == each.room:
            if not regrown(<void**>&each.points, 2 * each.room * sizeof(int64_t)):
                return -1
            for field in range(each.arity):
                if not regrown(<void**>&each.columns[field].values, 2 * each.room * 8):
                    return -1
            each.room *= 2
        each.points[each.count] = self.points - 1
        each.count += 1
        return 0

    cdef int _point(self, int64_t time) noexcept:
        if self.points == self.room:
            if not regrown(<void**>&self.times, 2 * self.room * sizeof(int64_t)):
                return -1
            self.room = 2 * self.room
        self.times[self.points] = time
        self.points += 1
        return 0

    cdef void _forget_last(self) noexcept:
        """Take back the last time-point, with its tuples."""
        cdef int place, field
        cdef Predicate* each
        self.points -= 1
        for place in range(self.count):
            each = &self.predicates[place]
            while each.count and each.points[each.count - 1] == self.points:
                each.count -= 1
            for field in range(each.arity):
                if each.columns[field].kind == STRING or each.columns[field].kind == WIDE:
                    each.columns[field].used = (
                        (<int32_t*> each.columns[field].values)[each.count - 1] if each.count else 0
                    )

    def take(self):
        """The time-points since the last call.

        Returns
        -------
        times : int64 array of shape (points,)
        relations : list of (int, int64 array of shape (rows,), list)
            Of each predicate with tuples its place, the time-points of its tuples (counted from 0, ascending), and per
            field an int64, float64 or bool array, or a pair of int32 offsets of shape (rows + 1,) and bytes: texts, or
            the digits of integers of any size.
        """
        cdef int place, field
        cdef Predicate* each
        times = _copied(<char*> self.times, self.points, "int64")
        relations = []
        for place in range(self.count):
            each = &self.predicates[place]
            if each.count:
                columns = [_column(&each.columns[field], each.count) for field in range(each.arity)]
                relations.append((place, _copied(<char*> each.points, each.count, "int64"), columns))
            each.count = 0
            for field in range(each.arity):
                each.columns[field].used = 0
        self.points = 0
        return times, relations


cdef object _column(Column* column, int64_t rows):
    if column.kind == INT:
        return _copied(column.values, rows, "int64")
    if column.kind == FLOAT:
        return _copied(column.values, rows, "float64")
    if column.kind == BOOL:
        return _copied(column.values, rows, "bool")
    import numpy as np  # only who asks for columns needs it

    offsets = np.zeros(rows + 1, np.int32)
    offsets[1:] = _copied(column.values, rows, "int32")
    return offsets, column.text[:column.used]


cdef object _copied(char* values, int64_t rows, str kind):
    import numpy as np  # only who asks for columns needs it

    found = np.empty(rows, kind)
    cdef char[::1] view
    if rows:
        view = found.view(np.int8)
        memcpy(&view[0], values, found.nbytes)
    return found
