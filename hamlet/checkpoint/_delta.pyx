"""What has changed from one save to the next, as bytes: pieces of the old one by their place, and what is new.

Blocks of the old bytes are found in the new ones wherever they have moved to; after a difference the bytes at the same
distance are tried first, since most changes are a number that is another one now.

**Form.** Numbers of seven bits a byte, the lower ones first, all but the last with the highest bit set. First the
length of the new bytes; then, in turns, how many bytes follow that are new, these bytes, how far the place to copy from
lies from where the last copy would go on (twice that, or twice its negative less one), and how many bytes to copy.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

cdef enum:
    BLOCK = 32    # bytes that are found again
    NEAR = 128    # bytes behind a difference in which the same distance is tried
    WORTH = 12    # bytes that are worth a copy
    LONG = 64     # bytes of a copy at the same distance that need no other to be looked for
    LOOK = 512    # bytes in which a block is looked for that is the only one of its kind
    NUMBER = 10   # bytes of a number at most

cdef int64_t EMPTY = -9223372036854775807  # a slot of the table; in others the place of a block, or its complement


cdef inline uint64_t _word(const uint8_t* at) noexcept nogil:
    cdef uint64_t found
    memcpy(&found, at, 8)
    return found


cdef inline uint64_t _hash(const uint8_t* at) noexcept nogil:
    """Of a block."""
    cdef uint64_t found = _word(at) * <uint64_t>0x9E3779B97F4A7C15
    found = (found ^ (found >> 29) ^ _word(at + 8)) * <uint64_t>0xBF58476D1CE4E5B9
    found = (found ^ (found >> 31) ^ _word(at + 16)) * <uint64_t>0x94D049BB133111EB
    found = (found ^ (found >> 30) ^ _word(at + 24)) * <uint64_t>0x9E3779B97F4A7C15
    return found ^ (found >> 32)


cdef inline int64_t _alike(const uint8_t* one, const uint8_t* two, int64_t most) noexcept nogil:
    """How many bytes are the same."""
    cdef int64_t count = 0
    while count + 8 <= most and _word(one + count) == _word(two + count):
        count += 8
    while count < most and one[count] == two[count]:
        count += 1
    return count


cdef struct Output:
    uint8_t* at
    uint8_t* end    # beyond it the whole is shorter than the delta


cdef inline void _number(Output* output, uint64_t value) noexcept nogil:
    while value >= 128:
        output.at[0] = <uint8_t>(value | 128)
        output.at += 1
        value >>= 7
    output.at[0] = <uint8_t>value
    output.at += 1


cdef inline bint _step(
    Output* output, const uint8_t* fresh, int64_t length, int64_t moved, int64_t copied
) noexcept nogil:
    """Put bytes that are new, and a copy."""
    if output.end - output.at < length + 3 * NUMBER:
        return False
    _number(output, length)
    memcpy(output.at, fresh, length)
    output.at += length
    _number(output, 2 * moved if moved >= 0 else -2 * moved - 1)
    _number(output, copied)
    return True


cdef inline int64_t _near(const uint8_t* old, int64_t old_size, const uint8_t* new, int64_t size, int64_t at,
                          int64_t distance, int64_t* length) noexcept nogil:
    """The first place from `at` on where bytes at a distance are worth a copy."""
    cdef int64_t near = at, place
    while near < size and near < at + NEAR:
        place = near + distance
        if place < 0 or place >= old_size:
            break
        length[0] = _alike(old + place, new + near, min(old_size - place, size - near))
        if length[0] >= WORTH:
            return near
        near += length[0] + 1
    length[0] = 0
    return near


cdef inline int64_t _found(
    const uint8_t* old, int64_t old_size, const uint8_t* new, int64_t size, int64_t at, int64_t end,
    const int64_t* table, uint64_t mask, bint only, int64_t* place, int64_t* length,
) noexcept nogil:
    """The first place from `at` on where a block of the old bytes begins; `only`: one that is there once."""
    cdef int64_t near = at, known
    cdef uint64_t slot
    while near + BLOCK <= size and near < end:
        slot = _hash(new + near) & mask
        while table[slot] != EMPTY:
            known = table[slot] if table[slot] >= 0 else ~table[slot]
            if not only or table[slot] >= 0:
                length[0] = _alike(old + known, new + near, min(old_size - known, size - near))
                if length[0] >= BLOCK:
                    place[0] = known
                    while near > at and place[0] > 0 and old[place[0] - 1] == new[near - 1]:
                        near, place[0], length[0] = near - 1, place[0] - 1, length[0] + 1
                    return near
            slot = (slot + 1) & mask
        near += 1
    length[0] = 0
    return near


cdef bint _steps(const uint8_t* old, int64_t old_size, const uint8_t* new, int64_t size, const int64_t* table,
                 uint64_t mask, Output* output) noexcept nogil:
    """Put all steps; False where they need more room than there is."""
    cdef int64_t at = 0, distance = 0, place = 0, length = 0, near, expected = 0
    cdef int64_t other, other_place = 0, other_length = 0
    while at < size:
        near = _near(old, old_size, new, size, at, distance, &length)
        place = near + distance
        if length < LONG:
            other = _found(old, old_size, new, size, at, at + LOOK, table, mask, True, &other_place, &other_length)
            if other_length > length:
                near, place, length = other, other_place, other_length
        if not length:
            near = min(size, at + (output.end - output.at))  # more that is new has no room
            near = _found(old, old_size, new, size, at, near, table, mask, False, &place, &length)
            if not length:
                break  # nothing more is found again
        if not _step(output, new + at, near - at, place - expected, length):
            return False
        distance = place - near
        at, expected = near + length, place + length
    return at == size or _step(output, new + at, size - at, 0, 0)


def encoded(const uint8_t[::1] old, const uint8_t[::1] new):
    """The way from some bytes to others; None where it is longer than the half of them."""
    cdef int64_t old_size = old.shape[0], size = new.shape[0], room = size // 2 + 64, blocks = old_size // BLOCK
    cdef int64_t place, known
    cdef uint64_t mask = 15, slot
    cdef int64_t* table
    cdef uint8_t* buffer
    cdef Output output
    cdef bint fits = False
    if not old_size or not size:
        return None
    while mask < <uint64_t>(2 * blocks):
        mask = 2 * mask + 1
    table = <int64_t*>malloc((mask + 1) * sizeof(int64_t))
    buffer = <uint8_t*>malloc(room)
    if table == NULL or buffer == NULL:
        free(table)
        free(buffer)
        raise MemoryError
    with nogil:
        for place in range(<int64_t>mask + 1):
            table[place] = EMPTY
        for place in range(blocks):
            slot = _hash(&old[place * BLOCK]) & mask
            # Of blocks that are alike the first one is kept: most follow where a value is repeated.
            while table[slot] != EMPTY:
                known = table[slot] if table[slot] >= 0 else ~table[slot]
                if _alike(&old[known], &old[place * BLOCK], BLOCK) == BLOCK:
                    table[slot] = ~known
                    break
                slot = (slot + 1) & mask
            if table[slot] == EMPTY:
                table[slot] = place * BLOCK
        output.at, output.end = buffer, buffer + room
        _number(&output, size)
        fits = _steps(&old[0], old_size, &new[0], size, table, mask, &output)
    free(table)
    try:
        return PyBytes_FromStringAndSize(<char*>buffer, output.at - buffer) if fits else None
    finally:
        free(buffer)


cdef int64_t _read(const uint8_t[::1] delta, int64_t* at) except -1:
    cdef uint64_t found = 0
    cdef int shift = 0
    while True:
        if at[0] >= delta.shape[0] or shift > 56:
            raise ValueError("a change of a state is cut short")
        found |= <uint64_t>(delta[at[0]] & 127) << shift
        shift += 7
        at[0] += 1
        if delta[at[0] - 1] < 128:
            return <int64_t>found


def applied(const uint8_t[::1] old, const uint8_t[::1] delta):
    """The bytes that a delta leads to.

    Raises
    ------
    ValueError
        If it is none, or one from other bytes.
    """
    cdef int64_t at = 0, done = 0, place = 0, size = _read(delta, &at), length, moved
    cdef uint8_t* target
    if size > (old.shape[0] + 1) * delta.shape[0]:
        raise ValueError("a change of a state is damaged")
    found = PyBytes_FromStringAndSize(NULL, size)
    target = <uint8_t*>PyBytes_AS_STRING(found)
    while at < delta.shape[0]:
        length = _read(delta, &at)
        if length > delta.shape[0] - at or length > size - done:
            raise ValueError("a change of a state is damaged")
        memcpy(target + done, &delta[0] + at, length)
        at, done = at + length, done + length
        moved = _read(delta, &at)
        length = _read(delta, &at)
        place += moved // 2 if moved % 2 == 0 else -(moved + 1) // 2
        if place < 0 or place > old.shape[0] or length > old.shape[0] - place or length > size - done:
            raise ValueError("a change of a state is of another one")
        memcpy(target + done, &old[0] + place, length)
        place, done = place + length, done + length
    if done != size:
        raise ValueError("a change of a state is cut short")
    return found
