"""What a kernel knows and holds: its tables, its states, the batch under way; every part of the kernel works on it."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport realloc

from hamlet.kernel.expression cimport Column, Register
from hamlet.kernel.lanes.lanes cimport LANES_WIDEST, LIVE_SLOTS, Band, Block, Input, LiveChunk, Machine, Word
from hamlet.kernel.plan cimport Entry, Query
from hamlet.kernel.radix_sort cimport MOST_ARRANGED, Event
from hamlet.kernel.row_columns cimport RowColumns
from hamlet.kernel.run_length cimport KeyRun
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.query_state cimport State
from hamlet.memory.budget cimport Account, take, take_spare
from optimizer.benefit cimport CostFacts
from optimizer.choose cimport ChoiceSpace

cdef enum:
    MOST_GRAPHLETS = 64  # per key; types beyond are processed event by event
    LONGEST_BURST = 1024
    MOST_MEMBER_CLASSES = 128      # of a graphlet: 64, and one per role
    MOST_PENDING = 32    # steps that wait for a query
    MOST_NUMBERS = 4     # of a cell, if bursts may wait: its count, and sums
    MOST_HELD = 1024     # windows of which rows are not written yet

cdef enum:               # numbers of operators: who computes; `hamlet.planner.paths` says what each is
    SCALAR
    EVENT_STORE
    SIMD
    PANE_MATRIX
    COMPLETE_WINDOW
    MOST_OPERATORS = 16  # those that other modules add, too

cdef enum:               # Feature: faster paths on which no result depends, likewise
    ACTIVE_QUERIES
    INT32
    ROW_COLUMNS
    RUN_LENGTH
    BURSTS_AT_ONCE
    BYTES
    DEFERRED_BURSTS
    PLAIN_DOUBLES
    INDEX
    EVENT_MAPS
    AVX2
    AVX512
    FEATURES             # how many there are

cdef enum Membership:
    STRANGER
    MEMBER
    BANNED               # some class of the type does more to the query than one burst can

cdef enum Giving:
    GIVES_EVENTS         # how many there are
    GIVES_PRESENT        # how many have a value
    GIVES_TOTAL          # the sum of the values
    GIVES_FLAG           # whether any has a value

cdef enum Policy:
    NEVER                # every query computes its own coefficients
    STATIC               # one computation for all, always
    DYNAMIC              # the benefit model decides per burst
    RANDOM               # for tests: results never depend on a decision

cdef enum Decision:
    ALONE                # no two queries share the burst
    SHARED
    SPLIT                # queries that shared the graphlet's last burst do so no longer
    MERGED               # queries that were on their own in it share now

cdef struct Contribution:        # what the events of a burst bring themselves, for each trend
    int what             # Giving
    int number           # into which number, or flag
    int column           # of which event column, -1 where every event counts

cdef struct Form:        # what bursts of an arrival do, see `Pending.live` for the bits
    bint loop
    int target           # a cell
    int source           # a cell beside the target, -1 for none
    uint64_t reads       # bits of all that it reads
    uint64_t writes      # bit of the target
    uint64_t start       # bit of the start among them
    int contributions
    Contribution contribution[2 * MOST_NUMBERS]

cdef struct Member:      # a query whose Kleene sub-pattern a graphlet serves
    int query
    int operator         # that has the query by itself
    int arrival
    int role             # its local predicate, counted over the graphlet
    bint loop            # whether its events may follow one another
    bint starts          # whether a trend may begin with its events
    uint64_t columns     # bits of the event columns that its aggregates read, see column_bit
    const Form* form     # a null pointer where its bursts take effect at once
    int member_class              # its `MemberClass`

cdef struct MemberClass:         # members that a decision does not tell apart
    int role
    int types            # event types that a trend is made of: t
    uint64_t columns

cdef struct Graphlet:    # events of one type that queries bind to a Kleene sub-pattern (Def. 3.6)
    bint changed         # members have come or gone since programs of bands were written
    int members
    int roles
    Member* member       # [members]
    uint8_t* membership    # [queries] whether a query is a member, may become one, or must not
    int* role            # [roles] the role's number among all
    int member_classes             # at least one per role; where there is no other, each has the number of its role
    MemberClass* member_class             # [classes]
    uint64_t reads       # bits of the columns that its members read
    bint loops           # whether events may follow each other in a trend of some member
    int64_t pane         # no window of a member opens or closes from here...
    int64_t pane_end     # ...to before this time
    bint active          # a burst is under way
    int64_t key
    int64_t time         # of its first event
    int64_t border       # no window of a member opens or closes before
    int64_t events       # b
    int64_t* rows        # [LONGEST_BURST] the events, where a member reads them...
    const Event* piece   # ...and they are not these and the next ones, the values of which lie side by side; else NULL
    int64_t key_runs    # how many; `rows` are their places among all
    int kinds            # classes among the events
    int* kind            # [classes]
    int64_t* of_kind     # [classes] events of each
    int loose            # members in no band
    int only             # the band of all members, if they have one role and tumbling windows, else -1
    bint sharing         # whether the last burst that some query had a trend to extend in was shared
    bint even            # whether all members have the same windows
    uint64_t* columns    # [roles] bits of the columns that members of a role read
    int lives            # members with trends that the burst extends: k
    bint handed          # some of the band members are held by states
    bint in_blocks       # whether some of them may be in blocks
    int lone             # live members whose queries are held by states
    int* live            # [members] these; once listed all live members, in order
    bint listed
    uint64_t every       # bits of their roles

cdef struct DecisionHistory:        # the live graphlet of a key, which later bursts go on or end
    int type             # of its events, plus 1; 0 where there is none
    int carried          # snapshots that it carries
    int64_t n            # matched events in the window so far; where windows overlap, an estimate
    int64_t window       # n begins anew at this time
    int64_t g            # events in the graphlet
    int64_t border       # the graphlet ends at this time
    uint64_t shared      # bits of the roles that shared its last burst
    uint64_t alone       # of the others in it

cdef struct Record:      # of a burst, for the trace
    int64_t pane         # where its pane begins
    int64_t key
    int64_t type
    int64_t b
    int64_t n
    int64_t g
    int64_t k
    int64_t s_c
    int64_t s_p
    double shared_cost
    double non_shared_cost
    int64_t decision     # Decision
    int64_t queries      # how many numbers of queries that shared belong to it

cdef struct Trace:
    bint on
    Py_ssize_t count
    Py_ssize_t capacity
    Record* record
    Py_ssize_t numbers
    Py_ssize_t numbers_capacity
    int32_t* number      # queries that shared, record after record

cdef struct Chain:       # how the bursts of a query can wait, see `burst_runs`
    bint fits
    int cell             # under the Kleene plus
    int before           # the other cell that its events extend, -1 for none
    uint64_t start       # bit of the start that they extend
    uint64_t starts      # bits of starts under guard sets
    int numbers          # limb vectors of a cell: its count, and its sums
    int component[MOST_NUMBERS]
    int more[MOST_NUMBERS]  # their limbs beyond those of the count
    int flags            # components that tell whether there is a value
    int flag[MOST_NUMBERS]
    Form* form           # [arrivals]

cdef struct Step:        # a burst that waits, or several that follow each other for the query
    const Form* form
    int64_t events
    uint64_t flags       # bits of the flags that its events set
    int64_t value[MOST_NUMBERS]  # what they bring into each number, for each trend

cdef struct Pending:     # what a query's state, of the key under way, has not taken in yet
    State* state         # a null pointer: nothing is known of it
    int64_t border       # that of the state
    uint64_t live        # bits of cells with trends in some window, all steps taken in; behind them of starts
    int steps
    bint listed          # whether the query is among `Core.begun`
    const Form* form     # of the last step, a null pointer where there is none
    Step step[MOST_PENDING]

cdef struct Due:
    int64_t time
    int64_t slot         # key * queries + query, or ~(key * bands + band)

cdef struct Calendar:    # when the next window of each state closes; a binary heap
    Py_ssize_t dues
    Py_ssize_t capacity
    Due* due

cdef struct ActiveVector:  # as many queries side by side as a vector has elements (`active_queries.h`)
    LiveChunk live
    const Machine* machine
    int feature          # of the machine, as that of a band
    bint halves          # whether the machine takes small integers two for one
    int lanes
    int query[LANES_WIDEST]
    int before[3]        # planes before those that hold integers, doubles, ranks
    int place            # its first word among the results of a window
    uint64_t unlisted    # bits of the lanes whose rows go to no row columns
    # of lanes whose cells are asked for
    int column[LANES_WIDEST]  # of a map: the cell that holds one trend at the beginning; -1: trends begin
    int cells[LANES_WIDEST]   # of the query
    int at[LANES_WIDEST][LIVE_SLOTS]  # where each of these stands
    int band[LANES_WIDEST]
    int moved[LANES_WIDEST]   # the end of a lane's moves
    int* move            # [2 * moves] a word of the cells, and where in the map or cohort of its band it belongs

cdef struct LaneGroup:   # chunks of live lanes that take as many events at a time
    int first
    int fronts           # the first one of the others than those in which trends begin
    int end
    int band             # of exact maps: all these lanes make maps of one chunk of a band
    int chunk
    uint64_t kinds       # bits of the classes whose events do something to it
    uint8_t extends[64]  # [classes] one event makes at most so many partial trends of one
    uint8_t begins[64]   # [classes] and begins at most so many

cdef struct ActivePlace:  # where the results of a query stand among those of a window
    int32_t count        # the word with the number of its trends; 0 where there is none, or no row columns
    int32_t chunk

cdef struct ActiveQueries:  # the lanes in which events of some classes can make trends
    uint64_t kinds       # bits of the classes; 0: no set of classes yet
    int64_t met          # windows with just these
    int chunks
    int groups
    LaneGroup* group
    ActiveVector* chunk  # a null pointer until it is worth making them
    int loads
    Input* load          # [loads] the inputs of all chunks
    int* most            # [classes] one event makes at most 1 + most partial trends of one; it begins at most so many
    int words            # of the results of a window: a vector of zeros, then those of the chunks, [planes][width]
    ActivePlace* place   # [queries]
    int held             # 1 + its number among the sets of windows that are held; 0 for none
    int64_t bytes        # of all that

cdef struct RowBuffer:            # windows of which rows are not written yet, see `row_buffer`
    int windows
    int32_t key[MOST_HELD]
    int32_t place[MOST_HELD]  # the first word of its results
    int32_t set[MOST_HELD]
    int sets                 # of classes, as windows have them
    ActiveQueries* chosen[MOST_HELD]
    int runs                 # windows of different keys that begin at the same time
    int64_t number[MOST_HELD]
    int first[MOST_HELD + 1]
    Word* word               # results, window after window
    Py_ssize_t words
    Py_ssize_t capacity
    int32_t* found           # [queries] how many windows with trends of a query are listed
    uint16_t* listed         # [queries][MOST_HELD] these
    # of the query whose rows are written
    int32_t source[MOST_HELD + 16]   # the word with the number of trends; a vector may be written behind all rows
    int32_t source_set[MOST_HELD + 16]
    int64_t taken[MOST_HELD]         # numbers, before they are what they become

cdef struct CompleteWindows:  # what takes windows at once that are whole in a batch, see `window`
    bint fits            # whether the queries allow it
    int classes          # for so many classes this was found out
    int64_t within       # of all queries
    ActiveQueries* chosen  # [SETS] by a number for their classes
    ActiveQueries every    # all lanes
    uint64_t* starting   # [bands] bits of the classes with which a trend may begin
    bint starts          # whether a window holds one trend from the start: the empty one, under a guard
    Word* input          # what the events of the window under way bring
    Word* trends         # what they extend
    RowBuffer* held           # what that came to, in this window and those before
    Word* plane          # of one lane, as its band has them
    int64_t own          # bytes of these
    int64_t bytes        # of the tables of `chosen`
    bint ordered         # whether rows come in the order in which they are asked for
    int64_t tried        # windows of the batch, whole or not
    int64_t taken        # of them
    int pause            # batches for which none is tried

cdef struct Maps:        # what takes events of a pane at once as a map from cells to cells, see `event_maps`
    bint tries           # whether the batch under way is large enough
    bint fits            # whether the queries allow it
    int classes          # for so many classes this was found out
    int32_t often[64]    # [classes] events of each in a sample
    int64_t within       # of all queries
    int64_t slide
    ActiveQueries every    # all queries, from each of their cells
    ActiveQueries alone    # all queries, from what stands in the cells of one window
    uint64_t* starting   # [bands] bits of the classes with which a trend may begin
    Block** block        # [bands] of the key under way; a null pointer where there is nothing to map
    Word** map           # [bands] [1 + slots] cohorts of words: what begins, and what one trend in each slot becomes
    Word** cohort        # [bands] that goes on in registers; a null pointer where there is none
    Py_ssize_t words     # of all bands; where integers are mapped, the next of LIMB_MAPS lie behind them
    Word* input          # what the events under way bring
    Word* trends         # what they extend
    Word* cells          # of a chunk at their end
    int64_t own          # bytes of these

cdef struct PlaneColumn:  # where the numbers of a row column come from
    int64_t flip         # the bits in which a value differs from its rank
    int form             # what the plane holds: integers, doubles, ranks
    int ordinal          # its number among these
    int how              # Casting, of the plane
    bint doubles         # scaled ones, or ranks of doubles

cdef struct Rows:        # of closed windows of one query
    Py_ssize_t count
    Py_ssize_t capacity
    Py_ssize_t words
    Py_ssize_t words_capacity
    int64_t* key
    int64_t* window
    int32_t* width
    uint64_t* word       # row after row, as many words as a cell of that width has

cdef struct Work:        # what an operator was given, added up over queries, or over groups of queries side by side
    int64_t events       # also those of bursts
    int64_t bursts
    int64_t windows      # closed, per query and key

cdef struct Unit:        # what an operator is fed for: a band, or a query
    int operator
    int number

cdef struct Consumer:    # who takes a single event of a class that does not only join a burst
    int operator
    int unit
    int entry            # what the event does to the query; -1 where the unit is a band

cdef struct Core:
    int queries
    Query* query         # [queries]
    Account* account     # of the run
    int64_t own          # bytes taken, but for those of the states
    Py_ssize_t keys
    State** state        # [keys][queries]
    int64_t states       # alive; one for each query in a block
    int bands
    Band* band           # [bands]
    int* band_of         # [queries] -1 for none
    int* lane_of         # [queries] its place in the band
    int* operator_of     # [queries] who has a query by itself: in no band, or when its numbers are too large for one
    int units
    Unit* unit           # [units] all bands, then the queries in none
    Calendar calendar
    Rows* rows           # [queries]
    RowColumns* row_columns         # [queries]
    PlaneColumn** plane_columns     # [queries][components]
    int64_t step         # number of the step under way, from 1
    int64_t advanced     # windows that end at or before this time are closed and stay so
    # what events do
    int classes
    int entries
    int class_members
    Entry* entry         # entries of all classes
    int* entry_first     # class -> its first entry; [classes + 1]
    int* class_member
    Consumer* consumer
    int* consumer_first  # class -> its first consumer; [classes + 1]
    # the batch under way
    const Column* columns
    const int32_t* class_of
    const int8_t* byte_class_of  # in place of `class_of`, or a null pointer
    const Event* events  # by key
    const int64_t** arranged  # [MOST_ARRANGED] values of event columns in their order; NULL where rows are looked up
    const int64_t* ranks
    const KeyRun* key_runs  # the batch as runs; a null pointer where it is taken event by event
    bint by_key_runs       # whether the last batch was taken so
    bint words           # whether keys and classes must not be bytes
    int64_t backoff     # batches until the next one is tried as runs
    int64_t next_backoff   # how many there were to be the last time
    int key_run_value[MOST_ARRANGED]  # event column -> which of a run's values it is
    bint extremes        # whether some query asks for extrema of bursts
    bint apart           # whether times come more than once, though for each key only once
    uint64_t* scratch    # sums of the step under way
    Py_ssize_t scratch_words
    uint8_t* used        # [most arrivals] which sums of the step are set
    Register* registers  # [most that a predicate needs] for the expression machine
    CompleteWindows whole
    Maps maps
    int64_t maps_from    # events of a batch for which it is worth trying to map panes
    int64_t whole_from   # events of a batch for which it is worth trying to take windows whole
    # where a Failure happened
    int failed_query
    int failed_predicate
    int failed_place
    Py_ssize_t failed_row
    # bursts
    int policy           # Policy
    bint paper           # whether decisions follow Eq. 7 with the paper's counts
    CostFacts costs      # of the model
    ChoiceSpace space
    uint64_t chance      # of RANDOM
    DecisionHistory* past           # [keys]
    Trace trace
    Graphlet graphlet[MOST_GRAPHLETS]
    uint8_t* class_plain  # class -> whether an event does nothing but join the burst of its graphlet
    int* class_graphlet  # class -> the graphlet that its events join, -1 for none
    uint64_t* class_roles  # class -> bits of the roles that accept it there
    uint64_t* class_ends   # class -> bits of the graphlets whose burst it ends
    uint64_t active      # bits of the graphlets with a burst under way
    int64_t border       # of the first of these to reach its border
    int event_columns
    int* floating        # [columns]
    Tally* kind_tally    # [kinds][columns] coefficients of the burst under way, per class of events
    Tally* role_tally    # [64][columns] the same per role
    int64_t role_events[64]
    uint64_t role_kinds[64]  # a number for the set of classes that a role accepts
    int role_lives[64]   # live members of a role
    int member_class_lives[MOST_MEMBER_CLASSES]  # and of a class
    int role_laned[64]   # those of them that are in blocks
    Pending* pending     # [queries]
    Chain* chain         # [queries]
    int begins
    int* begun           # [queries] those with something in `pending`
    const int64_t* rows_by_kind  # its rows, class after class; a null pointer where they are...
    int64_t place        # ...the events from this one on
    int64_t* kind_end    # [kinds] where the rows of each class of the burst end
    int64_t* kind_at     # [classes] where the next row of a class belongs
    int64_t* sorted      # [LONGEST_BURST]
    # counted
    int64_t windows      # closed, per query and key, with trends or without
    int64_t most_bits    # bit length of the largest count delivered
    int64_t bursts
    int64_t graphlets    # bursts that some query had a trend to extend in
    int64_t shared_graphlets  # those that served two queries or more
    int64_t coefficients  # times that a burst's coefficients were computed
    int64_t applied      # times that they were applied to a query: values of snapshots
    int64_t snapshots    # created: one per shared graphlet, and one per class of events where its queries differ
    int64_t beginnings   # rows of queries whose beginning another query has kept for them
    int64_t whole_windows  # per key, computed at once
    int64_t mapped       # panes whose map was computed for all windows that overlap in them
    int64_t decisions
    int64_t decided      # of them by the model, the others were known
    int64_t decision_ns  # what the model took
    int64_t splits
    int64_t merges
    # paths
    uint64_t operators   # bits of those that may be used: Operator
    uint64_t features    # and of these: Feature
    int widest           # vectors have at most so many elements; 0 for what the processor has
    Work work[MOST_OPERATORS]
    int64_t reached[FEATURES]  # how often each was used


cdef inline bint may_use(const Core* k, int feature) noexcept nogil:
    """Whether a path on which no result depends may be taken."""
    return k.features >> feature & 1


cdef inline int ones(uint64_t bits) noexcept nogil:
    """Of the bits, how many are set; not every processor has an instruction for it."""
    bits -= bits >> 1 & <uint64_t> 0x5555555555555555
    bits = (bits & <uint64_t> 0x3333333333333333) + (bits >> 2 & <uint64_t> 0x3333333333333333)
    bits = bits + (bits >> 4) & <uint64_t> 0x0F0F0F0F0F0F0F0F
    return <int> (bits * <uint64_t> 0x0101010101010101 >> 56)


cdef inline uint64_t mixed(uint64_t number) noexcept nogil:
    """A number that differs from its neighbours' in all bits (the finalizer of MurmurHash3)."""
    number ^= number >> 33
    number *= <uint64_t> 0xFF51AFD7ED558CCD
    number ^= number >> 33
    number *= <uint64_t> 0xC4CEB9FE1A85EC53
    return number ^ (number >> 33)


cdef inline int kind_of(const Core* k, int64_t row) noexcept nogil:
    """The class of an event."""
    return k.class_of[row] if k.byte_class_of == NULL else k.byte_class_of[row]


cdef inline uint64_t column_bit(int column) noexcept nogil:
    """The bit of an event column; those from 63 on have one in common."""
    return <uint64_t> 1 << min(column, 63)


cdef inline bint take_own(Core* k, Py_ssize_t bytes) noexcept nogil:
    """Count memory that is no state's, before it is allocated; False where the run may not take it."""
    if not take(k.account, bytes):
        return False
    k.own += bytes
    return True


cdef inline bint take_own_spare(Core* k, Py_ssize_t bytes) noexcept nogil:
    """Account for bytes of the kernel's own that it can do without; whether they are granted."""
    if not take_spare(k.account, bytes):
        return False
    k.own += bytes
    return True


cdef inline void* enlarged(
    Core* k, void* memory, Py_ssize_t before, Py_ssize_t capacity, Py_ssize_t size
) noexcept nogil:
    """Memory that is no state's with room for `capacity` numbers of `size` bytes instead of `before`, counted.

    A null pointer where there is none, or the run may not take it; the memory is then as it was.
    """
    cdef void* moved
    if not take_own(k, (capacity - before) * size):
        return NULL
    moved = realloc(memory, capacity * size)
    if moved == NULL:  # it was not got, and is not counted
        take_own(k, (before - capacity) * size)
    return moved
