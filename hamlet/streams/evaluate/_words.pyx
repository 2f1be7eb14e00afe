"""Texts as numbers, and instances by number: what a million keys are found by.

Contract
--------
`Words` gives every text a code: equal texts have equal codes as long as the text is held. A column is looked up in
blocks, each memory access asked for before it is needed, so that the misses of a block overlap. `sweep` forgets the
words that nobody else holds; codes kept anywhere else have to be named to it. `CellMap` finds an object by 64 bits.
"""

import os

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    const char* letters_of "PyUnicode_AsUTF8AndSize"(PyObject* text, Py_ssize_t* size)
    Py_ssize_t references "Py_REFCNT"(PyObject* thing)
    bint is_ascii "PyUnicode_IS_ASCII"(PyObject* text)

cdef enum:
    BLOCK = 32
    LEAST = 1 << 16  # words that are kept whoever holds them
    LEAST_BYTES = 1 << 23  # if they take no more
    WORD_BYTES = 80  # of the shortest text, its code and its slot

cdef uint64_t FIRST = 0xA0761D6478BD642FULL
cdef uint64_t SECOND = 0xE7037ED1A0B428DBULL


cdef inline uint32_t hash_of(const char* letters, Py_ssize_t size, uint64_t seed) noexcept nogil:
    """32 bits of a text, other ones in every process."""
    cdef uint64_t found = seed ^ <uint64_t>size, part
    while size > 8:
        memcpy(&part, letters, 8)
        found = mixed(found ^ part, FIRST)
        letters += 8
        size -= 8
    part = 0
    memcpy(&part, letters, size)
    found = mixed(found ^ part, SECOND)
    return <uint32_t>(mixed(found, FIRST) >> 32)


cdef int64_t bytes_of(PyObject* word) except -1:
    """What a text takes here; one beyond ASCII is there as UTF-8, too."""
    cdef Py_ssize_t size
    letters_of(word, &size)
    return WORD_BYTES + (size if is_ascii(word) else 3 * size)


cdef class Words:
    """Texts with a code each."""

    def __cinit__(self):
        self.spare = []
        self.calm, self.calm_bytes = LEAST, LEAST_BYTES
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.rebuild(1024)

    def __dealloc__(self):
        cdef int64_t code
        for code in range(self.used):
            if self.things[code] is not NULL:
                Py_DECREF(<object>self.things[code])
        free(self.things)
        free(self.slots)

    cdef object thing(self, uint64_t code):
        """The text of a code."""
        return <object>self.things[code]

    cdef int64_t intern(self, object word) except -1:
        """The code of a text."""
        cdef Py_ssize_t size
        cdef const char* letters = PyUnicode_AsUTF8AndSize(word, &size)
        cdef uint32_t hash = hash_of(letters, size, self.seed)
        cdef int64_t code = self.find(letters, size, hash)
        return code if code >= 0 else self.add(word, hash)

    cdef int64_t find(self, const char* letters, Py_ssize_t size, uint32_t hash):
        """The code of a text, -1 where it has none."""
        cdef uint64_t place = hash & self.mask, slot
        cdef Py_ssize_t length
        cdef const char* other
        while True:
            slot = self.slots[place]
            if slot == 0:
                return -1
            if <uint32_t>(slot >> 32) == hash:
                other = letters_of(self.things[<uint32_t>slot - 1], &length)
                if length == size and memcmp(other, letters, size) == 0:
                    return <int64_t>(<uint32_t>slot) - 1
            place = (place + 1) & self.mask

    cdef int64_t add(self, object word, uint32_t hash) except -1:
        """A code for a text that has none."""
        cdef int64_t code, room
        cdef uint64_t place
        cdef PyObject** things
        if 2 * (self.live + 1) > self.mask:
            self.rebuild(2 * (self.mask + 1))
        if self.spare:
            code = self.spare.pop()
        else:
            if self.used == self.room:
                room = 2 * self.room + 1024
                things = <PyObject**>realloc(self.things, room * sizeof(PyObject*))
                if things is NULL:
                    raise MemoryError
                self.things, self.room = things, room
            code = self.used
            self.used += 1
        Py_INCREF(word)
        self.things[code] = <PyObject*>word
        self.live += 1
        self.bytes += bytes_of(<PyObject*>word)
        place = hash & self.mask
        while self.slots[place] != 0:
            place = (place + 1) & self.mask
        self.slots[place] = (<uint64_t>hash << 32) | <uint64_t>(code + 1)
        return code

    cdef int rebuild(self, int64_t slots) except -1:
        """A table of so many slots, of the words that are there."""
        cdef uint64_t* found = <uint64_t*>calloc(slots, sizeof(uint64_t))
        cdef int64_t each
        cdef uint64_t place, slot
        if found is NULL:
            raise MemoryError
        if self.slots is not NULL:
            for each in range(self.mask + 1):
                slot = self.slots[each]
                if slot != 0 and self.things[<uint32_t>slot - 1] is not NULL:
                    place = (slot >> 32) & <uint64_t>(slots - 1)
                    while found[place] != 0:
                        place = (place + 1) & <uint64_t>(slots - 1)
                    found[place] = slot
        free(self.slots)
        self.slots, self.mask = found, slots - 1
        return 0

    def codes(self, const int64_t[::1] ends, const unsigned char[::1] letters, const unsigned char[::1] present,
              uint64_t[::1] out):
        """Look up a column of texts.

        Parameters
        ----------
        ends : int64 array of shape (n + 1,)
            Text i is ``letters[ends[i]:ends[i + 1]]``, in UTF-8.
        letters : uint8 array
        present : uint8 array of shape (n,), or of no length
            0 where a row has no text; of no length where all have one.
        out : uint64 array of shape (n,)
            Filled with codes, 0 where there is no text.

        Raises
        ------
        UnicodeDecodeError
            If a text is no UTF-8.
        """
        cdef Py_ssize_t n = out.shape[0], start, row, low, size
        cdef int stop, each
        cdef uint32_t[BLOCK] hashes
        cdef uint64_t[BLOCK] slots
        cdef const char* base = NULL if letters.shape[0] == 0 else <const char*>&letters[0]
        cdef bint every = present.shape[0] == 0
        cdef int64_t code
        for start in range(0, n, BLOCK):
            stop = <int>min(<Py_ssize_t>BLOCK, n - start)
            for each in range(stop):
                low = ends[start + each]
                hashes[each] = hash_of(base + low, ends[start + each + 1] - low, self.seed)
                prefetch(&self.slots[hashes[each] & self.mask])
            for each in range(stop):
                slots[each] = self.slots[hashes[each] & self.mask]
                if slots[each]:
                    prefetch(&self.things[<uint32_t>slots[each] - 1])
            for each in range(stop):
                if slots[each] and <uint32_t>(slots[each] >> 32) == hashes[each]:
                    prefetch(self.things[<uint32_t>slots[each] - 1])
            for each in range(stop):
                row = start + each
                if not every and not present[row]:
                    out[row] = 0
                    continue
                low = ends[row]
                size = ends[row + 1] - low
                code = self.find(base + low, size, hashes[each])
                if code < 0:
                    code = self.add(PyUnicode_DecodeUTF8(base + low, size, NULL), hashes[each])
                out[row] = code

    def code(self, word):
        """The code of one text."""
        return self.intern(word)

    def crowded(self):
        """Whether a sweep may pay."""
        return self.live >= self.calm or self.bytes >= self.calm_bytes

    def sweep(self, held):
        """Forget the words that only this table holds.

        Parameters
        ----------
        held : set of int
            Codes that are kept as such, whose words stay.
        """
        cdef int64_t code
        for code in range(self.used):
            if self.things[code] is not NULL and references(self.things[code]) == 1 and code not in held:
                self.bytes -= bytes_of(self.things[code])
                Py_DECREF(<object>self.things[code])
                self.things[code] = NULL
                self.spare.append(code)
                self.live -= 1
        self.rebuild(self.mask + 1)
        self.calm = max(<int64_t>LEAST, 2 * self.live)
        self.calm_bytes = max(<int64_t>LEAST_BYTES, 2 * self.bytes)


cdef class CellMap:
    """Objects by 64 bits; the caller holds the objects."""

    def __cinit__(self):
        self.rebuild(16)

    def __dealloc__(self):
        free(self.entries)

    cdef PyObject* find(self, uint64_t key) noexcept nogil:
        """The object, or NULL."""
        cdef uint64_t place = (mixed(key ^ FIRST, SECOND)) & self.mask
        while self.entries[place].value is not NULL:
            if self.entries[place].key == key:
                return self.entries[place].value
            place = (place + 1) & self.mask
        return NULL

    cdef void foresee(self, uint64_t key) noexcept nogil:
        """Ask for the memory that `find` will look at."""
        prefetch(&self.entries[mixed(key ^ FIRST, SECOND) & self.mask])

    cdef int put(self, uint64_t key, PyObject* value) except -1:
        """Add an object whose key is not there."""
        cdef uint64_t place
        if 2 * (self.live + 1) > self.mask:
            self.rebuild(2 * (self.mask + 1))
        place = mixed(key ^ FIRST, SECOND) & self.mask
        while self.entries[place].value is not NULL:
            place = (place + 1) & self.mask
        self.entries[place].key, self.entries[place].value = key, value
        self.live += 1
        return 0

    cdef int drop(self, uint64_t key) except -1:
        """Leave an object out; those after it move up, so that none is lost behind the gap."""
        cdef uint64_t place = mixed(key ^ FIRST, SECOND) & self.mask, home, gap
        while self.entries[place].value is not NULL and self.entries[place].key != key:
            place = (place + 1) & self.mask
        if self.entries[place].value is NULL:
            return 0
        gap = place
        while True:
            place = (place + 1) & self.mask
            if self.entries[place].value is NULL:
                break
            home = mixed(self.entries[place].key ^ FIRST, SECOND) & self.mask
            if ((place - home) & self.mask) >= ((place - gap) & self.mask):
                self.entries[gap] = self.entries[place]
                gap = place
        self.entries[gap].value = NULL
        self.live -= 1
        return 0

    cdef int rebuild(self, int64_t size) except -1:
        """A table of so many entries."""
        cdef Entry* old = self.entries
        cdef int64_t before = self.mask + 1 if old is not NULL else 0, each
        cdef uint64_t place
        cdef Entry* found = <Entry*>calloc(size, sizeof(Entry))
        if found is NULL:
            raise MemoryError
        for each in range(before):
            if old[each].value is not NULL:
                place = mixed(old[each].key ^ FIRST, SECOND) & <uint64_t>(size - 1)
                while found[place].value is not NULL:
                    place = (place + 1) & <uint64_t>(size - 1)
                found[place] = old[each]
        free(old)
        self.entries, self.mask = found, size - 1
        return 0
