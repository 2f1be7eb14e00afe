"""The tables of the matching operator, and what it keeps for one query and one key.

`hamlet.planner.matching` writes the tables; index pairs ``x``, ``x_end`` are half-open ranges.

**Nodes.** A node is a set of partial trends that stand in one state of the automaton, with their summed aggregates. Its
words are: the lane, the step of the last event (two bits mark a node that moves on: at the end of the step, and at the
end of its time), the value, and in lists that need them the attributes of the last event. Lanes keep apart what ends at
different times: a lane is an open window, the time at which the trends begin (SPAN), or 0 (sessions). Lists of merged
nodes are sorted by lane, then step; lists of single events are in the order of arrival.
**Logs.** Queries that need no nodes have their events in a log, several in one; its entries are the time, the step, the
bits of the slots that the event may be bound in and of those that it empties, and attributes (`logs`, `reach`).
**Rows apart.** Where an order column orders the events of a time, rows of other queries have no order among them. A
table then has every state twice: in the second half stand trends that end with a row, until its time is over.
**Values** are cells (`hamlet.kernel.cells`), then the bits of each exact set of distinct values, then the registers
of each approximate one, then the vertex of the lineage (`lineage`) where matched events are asked for, then the number
of the mark (`marks`) where trends are grouped by what they took. Lists are sorted by lane, mark and step.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hamlet.kernel.cells cimport floor_divide, lowest_window, words_of
from hamlet.kernel.expression cimport Code, Column, Register
from hamlet.kernel.plan cimport Predicate, Query
from hamlet.kernel.plan cimport Arrival as Binding
from hamlet.kernel.row_columns cimport RowColumns
from hamlet.memory.budget cimport Account

cdef enum Semantics:
    ANY                  # any events may be skipped
    NEXT                 # a partial trend is extended at the first step that can extend it, and nowhere else
    CONTIGUOUS           # only at the next step of its partition

cdef enum:
    HEAD = 2             # words of a node before its value
    LOG_HEAD = 2         # words of an entry of a log before the bits of its event
    REGISTER_BITS = 12   # of a hash choose a register
    REGISTER_WORDS = 512  # 2^12 registers of one byte
    FIRST_SET_WORDS = 1
    FOUND = 3            # words of what is found of an event for a search
    MOST_MARKS = 15      # of a query whose numbers are fields of words (`packed`), besides that of none

cdef extern from *:
    """
    #include <stdint.h>
    /* Few numbers: the compiler is kept from making vectors of them, which takes longer than adding them. */
    #define hamlet_one_by_one() __asm__ volatile("")
    #define HAMLET_MOVES ((uint64_t) 1 << 63)
    #define HAMLET_LEAVES ((uint64_t) 1 << 62)
    """
    void one_by_one "hamlet_one_by_one"() noexcept nogil
    const uint64_t MOVES "HAMLET_MOVES"
    const uint64_t LEAVES "HAMLET_LEAVES"  # moves on at the end of its time, with a row that has no order in it

cdef struct Way:         # what a transition reads
    int source           # state, 0 for the start
    int guards           # guard set over the gap, -1 for none
    int predicate        # on (earlier, later) event, -1 for none

cdef struct Arrival:     # an event bound to the variable of a state
    int state            # -1: trends that could take the event are not extended (they are in one of two sets only)
    int variable
    int ways
    int ways_end

cdef struct StateTable:
    int kept             # 1 where a transition leaves it
    int single           # 1 where its nodes are single events, since predicates look at them
    int columns          # member[columns : columns_end] are the event columns that predicates read
    int columns_end
    int guards           # the guards that may tell nodes apart, as a set; -1 for none
    int final            # 1 where a trend may end here under no guard
    int ends             # member[ends : ends_end] are the guarded ends, counted over all states
    int ends_end

cdef struct GuardArrival:
    int guard
    int state            # of its template, counted over all guards
    int ways             # sources are guard states, 0 for the start
    int ways_end
    int store            # which store keeps its events, -1 for none
    int final            # 1 where a match may end here

cdef struct Store:       # events of a negated pattern that its predicates look back at
    int columns
    int columns_end

cdef struct ValueSet:    # distinct values of an attribute
    int variable
    int column
    int approximate      # 1: registers; 0: an exact set
    int floating         # 1: doubles
    int text             # 1: numbers of strings

cdef struct Traced:      # a variable whose matched events are asked for
    int variable
    int columns          # member[columns : columns_end] are the event columns that its records keep
    int columns_end

cdef struct EventSet:    # events that several partitions of a group may take, or both operands of AND
    int traced
    int id               # places in a record: of what tells events apart, and of the value, -1 for none
    int place

cdef enum Function:
    FIRST
    LAST
    COUNT

cdef struct Taking:      # what GROUP-BY names of a variable's events in a trend
    int function
    int most             # of a count: trends that take more are dropped; -1 for none, so that too many are an error
    ValueSet values      # the variable, and the attribute

cdef struct Lineage:     # a graph of partial trends: which events are in them
    uint64_t* vertex     # two words of 32 bits each: an event's record (with EVENT) and what it extends, or two others
    Py_ssize_t count     # vertex 0 is that of no events
    Py_ssize_t capacity
    Py_ssize_t tidy_at   # so many vertices are looked through for those that nothing needs any more
    uint64_t* record     # which of the traced variables, then attributes; or a log: time, step, bits, attributes
    Py_ssize_t records
    Py_ssize_t record_capacity

cdef struct Marks:       # what partial trends took, numbered
    uint64_t* word       # of each thing that GROUP-BY names: whether there is an event and a value, and the value
    int32_t* slot        # open addressing; -1 is free
    Py_ssize_t count     # mark 0 is that of trends without an event
    Py_ssize_t slots     # a power of two
    Py_ssize_t tidy_at

cdef struct Move:        # what is entered from what has been reached: reached bits, shifted, where they are targets
    int shift            # to higher bits; negative for lower ones
    uint64_t targets

cdef struct Gain:        # what an event that some trend takes adds to a component
    int kind
    int place            # the first word of the component in a cell
    int column           # of the log, -1 where every event counts
    int integer
    int sum              # Log.sum that has it, -1 where events are added one by one

cdef struct Sum:         # events of a variable that the trends of a window take, as integers
    uint64_t count       # of those that have a value, where a column is asked for
    uint64_t low         # the sum of their values: 128 bits
    uint64_t high
    int64_t least
    int64_t greatest
    int place            # of the value, in words from an entry's attributes; of its time where no value is read
    int there            # of the byte that says whether there is one, in bytes
    int always           # 1 where none is read

cdef struct Trace:       # a variable of a query whose matched events are asked for
    uint64_t mask        # the bits of its states
    int gains            # gain[gains : gains_end]
    int gains_end
    int sums             # sum[sums : sums_end]
    int sums_end

cdef struct Member:      # a query that has its events in a log
    int query
    int word             # the word that its bits are in
    int base             # its first bit there; bits of a member are counted from it
    int slots            # a state under the guards of a way, or an end, that leaves it; a bit each
    uint64_t field       # its bits, in their place
    uint64_t finals      # the slots of ends
    uint64_t* state_slots  # [states]
    int* slot_state      # [slots]
    int* arrival         # [states] the arrival of each state but the start, which is at 0
    int* way_slot        # [ways] the slot that a way reads
    uint64_t* emptied    # [guards] the slots that a match empties
    int* fan             # [states] the most ways into a state that one trend can take
    uint64_t again       # the slots of states that a trend can be in twice
    int once             # how many other states there are
    int traces           # trace[traces : traces_end]
    int traces_end
    int cell             # where its cell begins in the log's room for cells
    int words            # of its cell
    int column           # of the attribute that trends are grouped by, -1 for none
    uint64_t named       # the slots of the variable that they are grouped by
    int tallies          # 1 where trends are counted; else it is enough that there is one
    int sums             # 1 where they have sums besides, or are counted in doubles (`compared`)
    int gates            # Log.gate[gates : gates_end] are its own
    int gates_end
    int* way_gate        # [ways] the gate that a way reads, -1 for none
    uint64_t* set_slots  # [event sets] the slots of each one's variable
    EventSet* event_set  # [event sets] places among the columns of the log

cdef struct Packing:     # numbers of a query in one window, as fields of words (`packed`)
    int width            # bits of a field
    int marks            # events of the variable
    int32_t event[MOST_MARKS + 2]  # from 1 on, their entries in the log
    uint64_t stay        # an event of the variable: fields whose trends keep their mark; of the others ..
    uint64_t ones        # .. a product with it, shifted by `top`, of which `total` are the bits that count, ..
    int top
    uint64_t total
    int shift            # .. goes to other marks, shifted by so much, and by more for each mark before
    int shift_by_mark

cdef struct Slot:
    uint64_t plain       # 0 where its variable is that which trends are grouped by, else all bits
    int named            # 1 where it is
    int grows            # bits by which an event that is taken in it makes numbers grow
    int one              # two bits of the same word from which ways lead to it
    int two
    int pairs            # and more: pair[2 * pairs : 2 * pairs_end]
    int pairs_end

cdef struct Change:      # of a number of trends, by an event
    int bit              # of the slot
    int one              # what stands in these slots is added, with marks changed ..
    int two
    int mark             # .. by the so manieth event of the variable
    int step
    uint64_t keep        # 0 where the slot is emptied before, else all bits
    uint64_t number      # that is added

cdef struct Key:         # of one side of a comparison of neighbours
    Code code
    int* column          # [count] of the log
    int count
    int floating

cdef struct Search:      # a comparison of neighbours, over the events of a window
    int keys             # of either side: all but an ordered one must be equal
    int ordered          # 1 where the last key of the earlier event must be below that of the later one
    int inclusive        # 1 where they may be equal
    int reversed         # 1 where both are turned round before
    int key[2]           # Log.key: of the earlier event from the first on, of the later one from the second on
    int word
    uint64_t taken[2]    # the slots that the earlier event, and the later one, are taken in
    uint64_t* found      # [entries][FOUND] both ordered keys, then the numbers of what must be equal; -1 for none
    Py_ssize_t groups
    int32_t* first       # [groups + 1] the places of a group's earlier events, ordered by key; where trends are counted
    int32_t* rank        # [entries] the place of an earlier event in its group
    int32_t* below       # [entries] how many of its group a later event may follow

cdef struct Gate:        # events that stand in a slot, as a way that compares reads it
    uint64_t slot        # its bit
    int query
    int predicate
    int search           # Log.search[search : search_end] answer it; where there are none each event is looked at
    int search_end
    int* vector          # of the log: what the predicate reads of the earlier event, and of the later one
    int* scalar
    uint64_t stamp
    uint64_t* best       # of each search [groups][2] a stamp, and the key that is compared most easily; or entries
    Py_ssize_t count     # of entries
    uint64_t* tree       # of each search [entries] a stamp and what trends are added up as (`compared`)

cdef struct Door:        # a way that compares
    int gate
    uint64_t targets     # the slots of the state that it leads to

cdef struct Partition

cdef struct Log:         # queries whose events are logged together (`logs`)
    int members
    int words            # of bits
    int tallies          # 1 where some member counts trends
    Partition* whole     # the events of a window that is whole in a batch, of any key; NULL where none has been met
    int head             # words of an entry before the event's attributes
    int64_t looks_back   # ticks that an entry may matter to a trend that ends later, besides its window's
    int columns
    int* column          # [columns] the event column of each attribute
    int* member_of       # [64 * words] the member that a bit is of
    uint64_t* field_of   # [members] its bits
    uint64_t* highest    # [words] the highest bit of each member
    uint64_t* lower      # [words] its other bits
    Member* member
    Trace* trace
    Gain* gain
    Sum* sum
    uint64_t* summed     # [words] the slots of variables that have sums
    int* trace_of        # [64 * words] the trace of such a slot
    Move* move
    int* move_first      # [words + 1] the moves of a word, move[move_first[word] : move_first[word + 1]]
    uint64_t* starts     # [words] the slots of starts
    uint64_t* finals     # [words]
    uint64_t* room       # [2 * words] what is reached, and the bits of queries with a row
    uint64_t* cell       # [words of all cells]
    int* listed          # [members] those with a row
    Packing* packing     # [members]
    Slot* slot           # [64 * words]
    int* pair
    uint64_t* standing   # [64 + 1] in the slots of a word, and nothing
    uint64_t* before     # [words][64] before the first event
    int* used            # [words] bits of a word up to the last one
    Change* change       # of the slots of a word
    int* twice           # [words] whether an event may be taken in a slot and in a lower one that a way leads to
    uint64_t* bound      # [classes][2 * words] what events may be bound in, and the slots that they empty
    int searches         # where neighbours are compared (`neighbours`)
    int orders           # 1 where trends of some of these are counted
    Search* search
    Key* key
    Gate* gate
    Door* door
    int* gate_first      # [words + 1] the gates of a word, gate[gate_first[word] : gate_first[word + 1]]
    int* door_first      # [words + 1]

cdef struct Calendar:    # windows are numbers of periods of a clock that is changed now and then
    int zone_changes        # of constant offset; 0 where windows begin at multiples of the slide
    int64_t* since       # [zone_changes] when each begins, ascending
    int64_t* offset      # [zone_changes] how far the clock is ahead then
    int64_t* shown       # [zone_changes] the clock has shown less than this before it, ascending
    int64_t period       # ticks of a period on the clock
    int64_t origin       # a reading of the clock at which period 0 begins
    int64_t first        # the period that is at 0 on the line of windows

cdef struct Table:       # one query
    Query cells          # the layout of cells; nothing else of it is used
    int semantics
    int64_t within
    int64_t slide
    int64_t span         # -1 for none
    int64_t gap          # of sessions, -1 for none
    int64_t delay        # ticks between a window's end and its row
    int64_t keeps        # ticks that a key is remembered after its last event, whatever stands in it
    int64_t pane         # gcd of within and slide
    Calendar calendar    # with SPAN, whose lengths are those of time: within, slide and pane are on the line then
    int session_end      # the component that is the last time of a session, -1 for none
    int states           # the start included
    int own_states       # those before the second half, if there is one
    int end_count        # guarded ends
    int guards
    int guard_states
    int stores
    int exact_sets
    int registers
    int sets             # both
    int lists            # states, ends, totals, stores
    int looks_back       # 1 where a negated pattern has predicates
    int variables
    Way* way
    Arrival* arrival
    StateTable* state
    int* end_guards      # [end_count] guard set
    GuardArrival* guard_arrival
    Store* store
    ValueSet* value_set  # exact ones first
    Query events         # the cells again: only the components over matched events are bound, columns are places
    Traced* traced
    int traces
    int record_words     # of a record of the lineage, or of an entry of a log
    Log* log             # where its events are logged, and looked through when a window closes (`reach`); else NULL
    int keeps_log        # 1 for the query whose partitions have the log
    EventSet* event_set
    int event_sets
    Taking* taking
    int takings
    Predicate* predicate
    int* member
    int* guard_first     # guard -> its first state
    int* guard_set       # set i is member[guard_set[2i] : guard_set[2i + 1]]
    Binding* binding     # [variables]
    int* table           # memory of the above
    int slides           # 1 where sums over trends of limited length are sliding products (`spans`)
    int arrivals
    int slots            # a state under the guards of a way that leaves it, numbered from 1
    int* way_slot        # [ways] the slot that is read, 0 for the start
    int* slot_first      # [states + 1] state -> its first slot
    uint64_t* emptied    # [guards] the slots that a match empties, by bits
    Query logged         # the cells again: columns are places in the log, which is the only store, or in `log`
    Partition* spare     # partitions that are free for other keys
    int spares

cdef struct Entry:       # what a class of events does to one query
    int arrivals         # class_member[arrivals : arrivals_end]
    int arrivals_end
    int guards
    int guards_end
    int named            # 1 where the pattern names the event's type
    int begins           # 1 where a partition without anything else takes notice
    int present          # 1 where the query sees such events at all

cdef struct Nodes:
    uint64_t* word
    Py_ssize_t head      # words before the first node
    Py_ssize_t count     # nodes
    Py_ssize_t capacity  # words
    int moves            # 1 where some node moves on

cdef struct Dictionary:  # the values of exact sets, numbered
    int64_t* value
    int32_t* slot        # open addressing; -1 is free
    Py_ssize_t count
    Py_ssize_t slots     # a power of two

cdef struct Partition:   # one query and one key
    Partition* next      # among spare ones
    int64_t step         # steps so far
    int64_t last         # time of the last one
    int64_t apart_step   # the step of the rows of the time under way whose matches of negated patterns wait, else 0
    int64_t horizon      # trends in lanes before it are over
    int64_t horizon_time  # matches of a negated pattern that began before it forbid nothing any more
    int64_t due          # the time of its entry in the calendar, INT64_MAX for none
    int64_t next_window  # SPAN: windows before it have been delivered
    int64_t row_due      # SPAN: when the next row is final, INT64_MAX where there are no totals
    int64_t begin        # the open session, until = its last event's time + gap
    int64_t until
    int open             # whether there is one
    int width            # limbs of a count
    int set_words        # of each exact set
    int bits             # all counts together, and 1, are at most 2^bits; those of totals where there are slots
    int back_bits        # those of a row, or a column, of the back
    int64_t bytes
    Nodes* nodes         # [lists] states, guarded ends, totals, stores
    int64_t* latest      # [guard_states][2] latest start of a partial match: step, time; step 0 for none
    int64_t* killed      # [guards][2] latest start of a finished match
    Dictionary* dictionary  # [exact_sets]
    Lineage lineage
    Marks marks

cdef struct Rows:        # rows of closed windows
    Py_ssize_t count
    Py_ssize_t capacity
    int64_t* key
    int64_t* window
    int32_t* width
    uint64_t* word
    Py_ssize_t words
    Py_ssize_t words_capacity
    int64_t* member      # the values of exact sets, row after row, set after set
    Py_ssize_t members
    Py_ssize_t members_capacity
    int64_t* size        # [count][exact sets] how many
    Py_ssize_t sizes
    Py_ssize_t sizes_capacity
    uint64_t* registers  # [count][registers][REGISTER_WORDS]
    Py_ssize_t register_words
    Py_ssize_t registers_capacity
    uint64_t* mark       # [count][2 * takings]
    Py_ssize_t marks
    Py_ssize_t marks_capacity
    uint64_t* event      # the events of event sets, row after row, set after set: id, whether there is a value, value
    Py_ssize_t events
    Py_ssize_t events_capacity
    uint64_t* event_size  # [count][event sets] how many
    Py_ssize_t event_sizes
    Py_ssize_t event_sizes_capacity

cdef struct Due:
    int64_t time
    int64_t slot

cdef struct Core:
    int queries
    Table* query
    int* taking_part     # the queries that events are given to one by one: not those that have them in a log
    int takers
    int* keeping         # [logs] the queries that keep a log
    int logs
    uint64_t* tally      # numbers of trends
    Py_ssize_t tally_words
    uint64_t* taken      # what is taken of a window's events, or what one query takes: event, bits
    Py_ssize_t taken_words
    uint64_t* compared   # what events of a window are compared by
    Py_ssize_t compared_words
    Py_ssize_t keys
    Partition** partition  # [keys][queries]
    Account* account
    int64_t own          # bytes of the arrays of this struct
    Rows* rows
    RowColumns* row_columns  # [queries]
    int in_order         # 1 while windows come in the order in which their rows are asked for
    int64_t whole_windows
    Due* due             # a heap
    Py_ssize_t dues
    Py_ssize_t dues_capacity
    int64_t advanced     # no event before it will come
    int classes
    Entry* entry         # [classes][queries]
    int* class_member
    int class_members
    const Column* columns
    const int64_t* ranks
    const uint64_t* hashes  # of strings, by number
    uint64_t* gathered   # what one arrival reads: lane, value
    Py_ssize_t gathered_words
    Py_ssize_t gathered_count
    int apart            # 1 where events of order 0 are rows, which have no order among the others of their time
    uint64_t mark        # MOVES or LEAVES: how the events that are read move trends on
    uint64_t* pending    # what the step adds: state, lane, row, value
    Py_ssize_t pending_words
    Py_ssize_t pending_end
    int64_t* fresh       # [guard states][2] of the step under way, and again of the rows of its time
    int64_t* kept_start  # [..][2] latest starts of what the rows of a time end, for stores
    Py_ssize_t kept_starts
    Py_ssize_t kept_start_words
    uint64_t* scratch
    Py_ssize_t scratch_words
    uint64_t* bound      # one event's components
    Py_ssize_t bound_words
    uint64_t* seen       # vertices, then records, that have been looked at: by stamp
    Py_ssize_t seen_words
    uint64_t stamp
    uint64_t* todo       # vertices to look at
    Py_ssize_t todo_words
    uint64_t* mapped     # marks of the event under way: old -> 1 + new, by stamp
    Py_ssize_t mapped_words
    uint64_t mark_stamp
    Py_ssize_t traced_row  # the row whose records are these, -1 for none
    int64_t* traced_record  # [traces]
    Column* kept_column  # columns over a record
    Column* vector       # columns of a predicate
    Column* scalar
    Register* registers
    int failed_query
    int failed_predicate
    int failed_place
    Py_ssize_t failed_row
    int64_t most_bits
    int64_t windows
    int64_t live
    int64_t moved        # partial trends that moved on, as nodes


cdef inline void clear(uint64_t* word, Py_ssize_t words) noexcept nogil:
    """Set few words to 0, one by one: what vectors have written takes long to be read again word by word."""
    cdef Py_ssize_t i
    for i in range(words):
        word[i] = 0
        one_by_one()


cdef inline void copy(uint64_t* target, const uint64_t* source, Py_ssize_t words) noexcept nogil:
    """Copy few words, one by one."""
    cdef Py_ssize_t i
    for i in range(words):
        target[i] = source[i]
        one_by_one()


cdef inline uint64_t rotated(uint64_t bits, int shift) noexcept nogil:
    return bits << (shift & 63) | bits >> (-shift & 63)


cdef inline Py_ssize_t value_words(const Table* t, const Partition* p) noexcept nogil:
    return (
        words_of(&t.cells, p.width) + t.exact_sets * p.set_words + t.registers * <Py_ssize_t> REGISTER_WORDS
        + (t.traces > 0) + (t.takings > 0)
    )


cdef inline uint64_t mark_of(const Table* t, const uint64_t* value, Py_ssize_t words) noexcept nogil:
    """The mark of a value of so many words."""
    return value[words - 1] if t.takings else 0


cdef inline uint64_t* vertex_of(const Table* t, uint64_t* value, Py_ssize_t words) noexcept nogil:
    """Where the vertex of a value of so many words stands; there is one."""
    return value + words - 1 - (t.takings > 0)


cdef inline int kept_words(int columns) noexcept nogil:
    """Words of the attributes of an event: values, and a byte each for whether there is one."""
    return columns + (columns + 7) // 8


cdef inline int extra_words(const Table* t, int number) noexcept nogil:
    """Words of a list's nodes behind their values."""
    cdef const StateTable* s
    if number < t.states:
        s = &t.state[number]
        return kept_words(s.columns_end - s.columns) if s.single else 0
    if number < t.states + t.end_count:
        return 1  # the pane of the last event
    if number == t.states + t.end_count:
        return 0
    number -= t.states + t.end_count + 1
    return kept_words(t.store[number].columns_end - t.store[number].columns)


cdef inline bint is_store(const Table* t, int number) noexcept nogil:
    return number > t.states + t.end_count


cdef inline Py_ssize_t node_words(const Table* t, const Partition* p, int number) noexcept nogil:
    """Words of a list's nodes; a store's have no value."""
    return HEAD + (0 if is_store(t, number) else value_words(t, p)) + extra_words(t, number)


cdef inline uint64_t* node_at(const Nodes* n, Py_ssize_t place, Py_ssize_t stride) noexcept nogil:
    return n.word + n.head + place * stride


cdef inline int64_t step_of(const uint64_t* node) noexcept nogil:
    return <int64_t> (node[1] & ~(MOVES | LEAVES))


cdef inline int64_t place_on_line(const Table* t, int64_t time) noexcept nogil:
    """Where the period that holds a time begins on the line of windows; without a calendar the time itself."""
    cdef const Calendar* c = &t.calendar
    cdef int low = 0, high = c.zone_changes, middle
    if c.zone_changes == 0:
        return time
    time = min(time, <int64_t> 1 << 61)
    while high - low > 1:
        middle = (low + high) // 2
        if c.since[middle] <= time:
            low = middle
        else:
            high = middle
    return (floor_divide(max(time + c.offset[low], c.shown[low] - 1) - c.origin, c.period) - c.first) * t.pane


cdef inline int64_t time_of_edge(const Table* t, int64_t place) noexcept nogil:
    """The time at which a period begins, given by its place on the line of windows; the place without a calendar."""
    cdef const Calendar* c = &t.calendar
    cdef int low = 0, high = c.zone_changes, middle
    cdef int64_t reading
    if c.zone_changes == 0:
        return place
    reading = (floor_divide(place, t.pane) + c.first) * c.period + c.origin
    while high - low > 1:  # the last zone change before which the clock has not shown so much
        middle = (low + high) // 2
        if c.shown[middle] <= reading:
            low = middle
        else:
            high = middle
    return max(c.since[low], reading - c.offset[low])


cdef inline bint find_pane(const Table* t, const Partition* p, int64_t time, int64_t* pane) noexcept nogil:
    """Whether a time is in a window that has not been delivered, and under SPAN its pane."""
    cdef int64_t place
    if t.span < 0 or t.gap >= 0:
        return True
    place = place_on_line(t, time)
    pane[0] = floor_divide(place, t.pane)
    return max(p.next_window, lowest_window(place, t.within, t.slide)) <= floor_divide(place, t.slide)


cdef inline bint may_begin(const Table* t, const Partition* p, int guards, int64_t lane, int64_t time) noexcept nogil:
    """Whether no match of a first guard lies before: in the window, or in the time of a trend."""
    cdef int i
    cdef const int64_t* killed
    cdef int64_t since = lane * t.slide
    if guards < 0:
        return True
    if t.span >= 0:
        since = time - t.span
    for i in range(t.guard_set[2 * guards], t.guard_set[2 * guards + 1]):
        killed = &p.killed[2 * t.member[i]]
        if killed[0] and (t.gap >= 0 or killed[1] >= since):
            return False
    return True


cdef inline Py_ssize_t row_of(uint64_t event) noexcept nogil:
    """The row of an event: the low half of its sorting key."""
    return <Py_ssize_t> (event & <uint64_t> 0xFFFFFFFF)


cdef inline const Entry* entry_of(const Core* k, int query, int of_class) noexcept nogil:
    return &k.entry[of_class * k.queries + query]
