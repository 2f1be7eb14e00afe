"""Ways over a log that compare neighbours: whether any event that stands in a slot may come right before another one.

What leads to an event and what leads on from it do not depend on each other, whatever neighbours are compared by. So an
event is reached exactly where one of those that have been reached before fits, and of all that stand in a slot it is
enough to ask the one with the least key: if ``earlier.x < later.x`` holds for any, it holds for that one. Backwards it
is the one with the greatest. Where other keys must be equal, there is one for each value of them. Comparisons that have
no keys are looked at event by event.

A *gate* is a slot and the predicate of a way that leaves it; a *door* leads from a gate to a state.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from hamlet.kernel.expression cimport Column, evaluate_block, evaluate_value
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.tables cimport (
    FOUND,
    LOG_HEAD,
    Core,
    Door,
    Gate,
    Key,
    Log,
    Move,
    Search,
    Table,
    rotated,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, OVERFLOW, Predicate

cdef enum:
    MOST_KEYS = 32

cdef struct Placed:      # an event by its keys
    int64_t key
    int32_t group
    int32_t entry


# ----------------------------------------------------------------------------------------------------- keys


cdef inline int64_t sortable(int64_t bits) noexcept nogil:
    """The bits of a double as an integer of the same order; -0.0 and 0.0 are one."""
    cdef double value = (<double*> &bits)[0] + 0.0
    bits = (<int64_t*> &value)[0]
    return bits ^ (<int64_t> (<uint64_t> (bits >> 63) >> 1))


cdef int check_keys(Core* k, const Log* log, const uint64_t* entry, Py_ssize_t row) noexcept nogil:
    """Refuse an event whose keys pass 64 bits while it is at hand to be named. Returns a Failure."""
    cdef const Gate* gate
    cdef const Search* search
    cdef const Key* key
    cdef int word, number, each, side, place, i
    cdef int64_t value
    cdef uint8_t there
    for word in range(log.words):
        for number in range(log.gate_first[word], log.gate_first[word + 1]):
            gate = &log.gate[number]
            for each in range(gate.search, gate.search_end):
                search = &log.search[each]
                for side in range(2):
                    if not entry[LOG_HEAD + word] & search.taken[side]:
                        continue
                    for place in range(search.keys):
                        key = &log.key[search.key[side] + place]
                        if key.code.size == 1:
                            continue
                        for i in range(key.count):
                            k.vector[i] = k.columns[log.column[key.column[i]]]
                        if evaluate_value(&key.code, k.vector, row, k.ranks, key.floating, &value, &there) >= 0:
                            k.failed_query, k.failed_predicate = gate.query, gate.predicate
                            k.failed_place, k.failed_row = -1, row
                            return OVERFLOW
    return NO_FAILURE


cdef inline void point_at(
    const Log* log, const uint64_t* entry, const int* column, int count, Column* to
) noexcept nogil:
    """Let columns have the attributes of an entry."""
    cdef const uint64_t* kept = entry + log.head
    cdef int i
    for i in range(count):
        to[i].data = <const int64_t*> kept + column[i]
        to[i].valid = <const uint8_t*> (kept + log.columns) + column[i]


cdef void point_at_all(const Log* log, const uint64_t* entry, Column* to) noexcept nogil:
    """Let columns have all attributes of an entry."""
    cdef const uint64_t* kept = entry + log.head
    cdef int i
    for i in range(log.columns):
        to[i].data = <const int64_t*> kept + i
        to[i].valid = <const uint8_t*> (kept + log.columns) + i


cdef bint find_keys(
    Core* k, const Log* log, const Search* s, const uint64_t* entry, int side, int64_t* found
) noexcept nogil:
    """The keys of an entry as the earlier or the later one; False where one is NULL."""
    cdef const Key* key
    cdef uint8_t there
    cdef int i
    for i in range(s.keys):
        key = &log.key[s.key[side] + i]
        point_at(log, entry, key.column, key.count, k.vector)
        if evaluate_value(&key.code, k.vector, 0, k.ranks, key.floating, &found[i], &there) >= 0 or not there:
            return False
        if key.floating:
            found[i] = sortable(found[i])
    if s.reversed:
        found[s.keys - 1] = ~found[s.keys - 1]
    return True


cdef int lay_gates(Core* k, const Table* t, const uint64_t* record, Py_ssize_t entries) noexcept nogil:
    """Find the keys of a window's events, and room for what stands in the gates. Returns a Failure."""
    cdef const Log* log = t.log
    cdef Search* search
    cdef Gate* gate
    cdef Py_ssize_t needed = 0, slots = 4, at, placed
    cdef int number, each
    while slots < 2 * entries:
        slots *= 2
    for number in range(log.searches):
        needed += (FOUND + max(log.search[number].keys, 1)) * entries
    for number in range(log.gate_first[log.words]):
        gate = &log.gate[number]
        needed += 2 * (gate.search_end - gate.search) * entries if gate.search_end > gate.search else entries
    placed = needed + slots // 2
    if log.orders:  # events to be ordered; of each search places, ranks, and how many an event may follow
        needed += 2 * entries + log.searches * (2 * entries + 1)
    if reserve_words(k, &k.compared, &k.compared_words, needed + slots // 2):
        return OUT_OF_MEMORY
    at = slots // 2
    for number in range(log.searches):
        search = &log.search[number]
        search.found = k.compared + at
        at += FOUND * entries
        number_keys(k, t, search, record, entries, k.compared + at, <int32_t*> k.compared, slots)
        at += max(search.keys, 1) * entries
    for number in range(log.gate_first[log.words]):
        gate = &log.gate[number]
        gate.best = k.compared + at
        gate.stamp, gate.count = 1, 0
        at += 2 * (gate.search_end - gate.search) * entries if gate.search_end > gate.search else entries
        for each in range(gate.search, gate.search_end):
            memset(best_of(gate, each, entries), 0, 2 * log.search[each].groups * sizeof(uint64_t))
    for number in range(log.searches if log.orders else 0):
        search = &log.search[number]
        search.rank = <int32_t*> (k.compared + placed + 2 * entries + number * (2 * entries + 1))
        search.below, search.first = search.rank + entries, search.rank + 2 * entries
        order_keys(search, entries, <Placed*> (k.compared + placed))
    return NO_FAILURE


cdef int compare_placed(const void* one, const void* other) noexcept nogil:
    cdef const Placed* a = <const Placed*> one
    cdef const Placed* b = <const Placed*> other
    if a.group != b.group:
        return 1 if a.group > b.group else -1
    return (a.key > b.key) - (a.key < b.key)


cdef void order_keys(Search* s, Py_ssize_t entries, Placed* placed) noexcept nogil:
    """Order the events on the earlier side by their keys, and find how many of them each on the later may follow."""
    cdef const int32_t* group
    cdef const uint64_t* found = s.found
    cdef Py_ssize_t at, count = 0, low, high, middle, own = 0
    cdef int64_t key
    for at in range(entries):
        group = <const int32_t*> (found + FOUND * at + 2)
        if group[0] >= 0:
            placed[count].key = <int64_t> found[FOUND * at] if s.ordered else 0
            placed[count].group, placed[count].entry = group[0], <int32_t> at
            count += 1
    qsort(placed, count, sizeof(Placed), compare_placed)
    s.first[0] = 0
    for at in range(count):
        while own < placed[at].group:
            own += 1
            s.first[own] = <int32_t> at
        s.rank[placed[at].entry] = <int32_t> at - s.first[own]
    while own < s.groups:
        own += 1
        s.first[own] = <int32_t> count
    for at in range(entries):
        group = <const int32_t*> (found + FOUND * at + 2)
        if group[1] < 0:
            continue
        low, high = s.first[group[1]], s.first[group[1] + 1]
        key = <int64_t> found[FOUND * at + 1]
        while low < high and s.ordered:
            middle = (low + high) // 2
            if placed[middle].key < key or (s.inclusive and placed[middle].key == key):
                low = middle + 1
            else:
                high = middle
        s.below[at] = <int32_t> high - s.first[group[1]]


cdef inline uint64_t* best_of(const Gate* gate, int search, Py_ssize_t entries) noexcept nogil:
    return gate.best + 2 * (search - gate.search) * entries


cdef void number_keys(
    Core* k, const Table* t, Search* s, const uint64_t* record, Py_ssize_t entries, uint64_t* known, int32_t* slot,
    Py_ssize_t slots
) noexcept nogil:
    """Find the ordered key of each entry on either side, and the number of its others among those of earlier ones."""
    cdef const Log* log = t.log
    cdef int64_t keys[MOST_KEYS]
    cdef Py_ssize_t _
    cdef int side, equal = s.keys - s.ordered
    cdef uint64_t* found = s.found
    cdef int32_t* group
    s.groups = 0
    memset(slot, 0, slots * sizeof(int32_t))
    for _ in range(entries):
        group = <int32_t*> (found + 2)
        for side in range(2):
            group[side] = -1
            if record[LOG_HEAD + s.word] & s.taken[side] and find_keys(k, log, s, record, side, keys):
                found[side] = <uint64_t> keys[s.keys - 1]
                group[side] = number_of(keys, equal, side == 0, known, &s.groups, slot, slots)
        found += FOUND
        record += t.record_words


cdef int32_t number_of(
    const int64_t* keys, int count, bint adds, uint64_t* known, Py_ssize_t* groups, int32_t* slot, Py_ssize_t slots
) noexcept nogil:
    """The number of some keys; -1 where they have none and get none."""
    cdef uint64_t hashed = 0
    cdef Py_ssize_t at
    cdef int i
    for i in range(count):
        hashed = (hashed ^ <uint64_t> keys[i]) * <uint64_t> 0x9E3779B97F4A7C15
        hashed ^= hashed >> 32
    at = <Py_ssize_t> (hashed & <uint64_t> (slots - 1))
    while slot[at]:
        if memcmp(known + (slot[at] - 1) * count, keys, count * sizeof(int64_t)) == 0:
            return slot[at] - 1
        at = (at + 1) & (slots - 1)
    if not adds:
        return -1
    memcpy(known + groups[0] * count, keys, count * sizeof(int64_t))
    groups[0] += 1
    slot[at] = <int32_t> groups[0]
    return slot[at] - 1


# ---------------------------------------------------------------------------------------------------- gates


cdef void clear_gates(const Log* log, int word, uint64_t slots) noexcept nogil:
    """Let nothing stand in some slots."""
    cdef int number
    for number in range(log.gate_first[word], log.gate_first[word + 1]):
        if log.gate[number].slot & slots:
            log.gate[number].stamp += 1
            log.gate[number].count = 0


cdef inline Fit fits(
    Core* k, const Table* t, const Gate* gate, const uint64_t* record, Py_ssize_t at, Py_ssize_t entries, bint forwards
) noexcept nogil:
    """Whether an entry may follow an event that stands in a gate, or backwards come before it."""
    cdef const Log* log = t.log
    cdef const Search* s
    cdef const uint64_t* own
    cdef const uint64_t* best
    cdef int number, group
    cdef int64_t low, high
    if gate.search == gate.search_end:
        return fits_any(k, t, gate, record, at, forwards)
    for number in range(gate.search, gate.search_end):
        s = &log.search[number]
        own = s.found + FOUND * at
        group = (<const int32_t*> (own + 2))[forwards]
        if group < 0:
            continue
        best = best_of(gate, number, entries) + 2 * group
        if best[0] != gate.stamp:
            continue
        low, high = <int64_t> own[0], <int64_t> best[1]
        if forwards:
            low, high = high, <int64_t> own[1]
        if not s.ordered or low < high or (s.inclusive and low == high):
            return FITS
    return NOT


cdef Fit fits_any(
    Core* k, const Table* t, const Gate* gate, const uint64_t* record, Py_ssize_t at, bint forwards
) noexcept nogil:
    """Whether an entry may follow, or come before, any of the events in a gate: each is looked at."""
    cdef Py_ssize_t i, other
    cdef Fit fit
    for i in range(gate.count):
        other = <Py_ssize_t> gate.best[i]
        fit = fits_pair(k, t, gate, record, other if forwards else at, at if forwards else other)
        if fit != NOT:
            return fit
    return NOT


cdef Fit fits_pair(
    Core* k, const Table* t, const Gate* gate, const uint64_t* record, Py_ssize_t earlier, Py_ssize_t later
) noexcept nogil:
    """Whether an entry may come right before another one, by a predicate without keys."""
    cdef const Predicate* p = &k.query[gate.query].predicate[gate.predicate]
    cdef Py_ssize_t where = 0
    cdef int failed
    point_at(t.log, record + earlier * t.record_words, gate.vector, p.vectors, k.vector)
    point_at(t.log, record + later * t.record_words, gate.scalar, p.scalars, k.scalar)
    failed = evaluate_block(&p.code, k.vector, 0, 1, k.scalar, 0, k.ranks, k.registers, &where)
    if failed >= 0:
        k.failed_query, k.failed_predicate, k.failed_place, k.failed_row = gate.query, gate.predicate, failed, -1
        return FAILED
    return FITS if k.registers[0].value[0] else NOT


cdef void stand(const Log* log, Gate* gate, Py_ssize_t at, Py_ssize_t entries, bint forwards) noexcept nogil:
    """Let an entry stand in a gate."""
    cdef const uint64_t* own
    cdef uint64_t* best
    cdef int number, group, side = 0 if forwards else 1
    if gate.search == gate.search_end:
        gate.best[gate.count] = <uint64_t> at
        gate.count += 1
    for number in range(gate.search, gate.search_end):
        own = log.search[number].found + FOUND * at
        group = (<const int32_t*> (own + 2))[side]
        if group < 0:
            continue
        best = best_of(gate, number, entries) + 2 * group
        if best[0] != gate.stamp:
            best[0], best[1] = gate.stamp, own[side]
        elif forwards:
            best[1] = <uint64_t> min(<int64_t> best[1], <int64_t> own[0])
        else:
            best[1] = <uint64_t> max(<int64_t> best[1], <int64_t> own[1])


# ----------------------------------------------------------------------------------------------------- ways


cdef inline uint64_t moved(const Log* log, int word, uint64_t bits, bint forwards) noexcept nogil:
    """The slots that ways without comparisons lead to from some slots, or backwards come from."""
    cdef const Move* move
    cdef uint64_t found = 0
    cdef int number
    for number in range(log.move_first[word], log.move_first[word + 1]):
        move = &log.move[number]
        if forwards:
            found |= rotated(bits, move.shift) & move.targets
        else:
            found |= rotated(bits & move.targets, -move.shift)
    return found


cdef int look_forwards_through(
    Core* k, const Table* t, int word, const uint64_t* record, Py_ssize_t entries, uint64_t* reached, uint64_t* touched
) noexcept nogil:
    """The slots of a word with gates that each entry enters, and `reached` those in the end. Returns a Failure."""
    cdef const Log* log = t.log
    cdef const uint64_t* entry = record
    cdef const Door* door
    cdef uint64_t* found = k.taken + word
    cdef uint64_t entered, fresh, emptied, step, bound
    cdef Py_ssize_t at = 0, begin
    cdef int number
    cdef Fit fit
    reached[0], touched[0] = log.starts[word], 0
    while at < entries:
        entered = moved(log, word, reached[0], True)
        fresh = emptied = 0
        begin, step = at, entry[1]
        while at < entries and entry[1] == step:
            bound = entry[LOG_HEAD + word]
            found[0] = entered & bound
            for number in range(log.door_first[word], log.door_first[word + 1]):
                door = &log.door[number]
                if not bound & door.targets:
                    continue
                if found[0] & door.targets and log.gate[door.gate].search < log.gate[door.gate].search_end:
                    continue  # what has no keys may be refused, whether it matters or not
                fit = fits(k, t, &log.gate[door.gate], record, at, entries, True)
                if fit == FAILED:
                    return OVERFLOW
                if fit == FITS:
                    found[0] |= door.targets
            fresh |= found[0]
            emptied |= entry[LOG_HEAD + log.words + word]
            touched[0] |= bound | emptied
            found += log.words
            entry += t.record_words
            at += 1
        reached[0] = reached[0] & ~emptied | fresh
        clear_gates(log, word, emptied)
        for number in range(log.gate_first[word] if fresh else log.gate_first[word + 1], log.gate_first[word + 1]):
            if log.gate[number].slot & fresh:
                stand_all(k, log, word, number, log.gate[number].slot, begin, at, entries, True)
    return NO_FAILURE


cdef int look_backwards_through(
    Core* k, const Table* t, int word, const uint64_t* record, Py_ssize_t entries, uint64_t wanted
) noexcept nogil:
    """Of the slots that each entry enters leave those from which an end is reached. Returns a Failure."""
    cdef const Log* log = t.log
    cdef const uint64_t* entry = record + entries * t.record_words
    cdef const Door* door
    cdef uint64_t* found = k.taken + entries * log.words + word
    cdef uint64_t fresh, emptied, step, left
    cdef Py_ssize_t at = entries, end
    cdef int number
    cdef Fit fit
    clear_gates(log, word, <uint64_t> -1)
    while at:
        fresh = emptied = 0
        end, step = at, (entry - t.record_words)[1]
        while at and (entry - t.record_words)[1] == step:
            at -= 1
            entry -= t.record_words
            found -= log.words
            left = found[0] & wanted
            for number in range(log.gate_first[word], log.gate_first[word + 1]):
                if found[0] & ~left & log.gate[number].slot:
                    fit = fits(k, t, &log.gate[number], record, at, entries, False)
                    if fit == FAILED:
                        return OVERFLOW
                    if fit == FITS:
                        left |= log.gate[number].slot
            found[0] = left
            fresh |= left
            emptied |= entry[LOG_HEAD + log.words + word]
        wanted = wanted & ~emptied | moved(log, word, fresh, False)
        clear_gates(log, word, emptied)
        for number in range(log.door_first[word] if fresh else log.door_first[word + 1], log.door_first[word + 1]):
            door = &log.door[number]
            if door.targets & fresh:
                stand_all(k, log, word, door.gate, door.targets, at, end, entries, False)
    return NO_FAILURE


cdef void stand_all(
    const Core* k, const Log* log, int word, int gate, uint64_t slots, Py_ssize_t begin, Py_ssize_t end,
    Py_ssize_t entries, bint forwards
) noexcept nogil:
    """Let the entries of a step that are taken in some slots stand in a gate."""
    cdef Py_ssize_t at
    for at in range(begin, end):
        if k.taken[at * log.words + word] & slots:
            stand(log, &log.gate[gate], at, entries, forwards)
