"""Lanes: queries side by side. What a band of queries is, and what is kept of it per key; the loops are in lanes.h."""

from libc.math cimport fabs
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

cdef extern from "lanes.h" nogil:
    ctypedef union Word "lanes_word":
        int64_t i
        double d
    ctypedef struct Group "lanes_group":
        int chunk
        int loop
        int grows
        int lanes
        int alike
        int sources
        int sources_end
        int targets
        int targets_end
        int binds
        int binds_end
    ctypedef struct LaneSource "lanes_source":
        int slot
        int mask
    ctypedef struct Bind "lanes_bind":
        int plane
        int input
        int mask
    ctypedef struct Kill "lanes_kill":
        int chunk
        int slot
        int mask
    ctypedef struct Input "lanes_input":
        int column
        int of
        int floating
    ctypedef struct LaneProgram "lanes_program":
        int groups
        int kills
        int inputs
        int extending
        int begun
        int direct
        int most
        int starts
        int loop
        Group* group
        LaneSource* source
        int* target
        Bind* bind
        Kill* kill
        Input* input
        int* begin
        uint64_t* found
    ctypedef struct Taken "lanes_taken":
        const LaneProgram* program
        const Word* x
        int64_t m
        int kind
    ctypedef struct Shape "lanes_shape":
        int width
        int chunks
        int slots
        int planes
        int whole
        int linear
        int ranks
        int vectors
        const int64_t* mask
    ctypedef struct Limbs "lanes_limbs":
        int limbs
        int most
        long head
        const int* whole
        const int* slots
        const int* before
        const int* others
    const int LIMB_BITS
    const int LIMB_FACTOR
    const int LIMB_PIECE
    const int LIMB_PIECES
    const int LIMB_MAP_BITS
    const int LIMB_MAP_LIMBS
    const int LIMB_MAPS
    unsigned short* limbs_in_use(const Shape* s, Word* cells, int chunk, int slot)
    long limbs_place(const Shape* s, const Limbs* w, int chunk, int slot)
    long limbs_words_of(const Shape* s, const Limbs* w)
    int limbs_grown(int64_t m, bint loop, bint large)
    void limbs_of_words(const Shape* s, const Limbs* w, const Word* cells, Word* to)
    void limbs_moved(const Shape* s, const Limbs* had, Word* cells, const Limbs* w, Word* to)
    void limbs_as_words(const Word* limb, int used, int width, uint64_t* to, int words)
    ctypedef struct LivePlane "live_plane":
        int holds
        int binds
        int bind
    ctypedef struct LiveChunk "live_chunk":
        int lanes
        int slots
        int planes
        int whole
        uint64_t kinds
        int kills
        int shape
        unsigned int bound
        uint64_t edges
        LivePlane* plane
        uint8_t* begin
        uint8_t* final
        int stride
        uint8_t* step
    ctypedef struct Machine "lanes_machine":
        int width
        void (*apply)(
            const Shape*, const LaneProgram*, Word** cells, int windows, int begins, const Word* x, int64_t m,
            int plain, Word* sums, uint64_t* found
        ) noexcept nogil
        void (*read)(
            const Shape*, const LaneProgram*, const Word* cells, const Word* x, int64_t m, int start, int plain,
            Word* sums
        ) noexcept nogil
        void (*kill)(const Shape*, const LaneProgram*, Word* cells) noexcept nogil
        void (*write)(const Shape*, const LaneProgram*, Word* cells, int plain, const Word* sums) noexcept nogil
        uint64_t (*window)(
            const LiveChunk*, const int32_t* kind, const uint8_t* ends, const Word* times, long n, const Word* x,
            long inputs, int small, Word* trends, Word* result, Word* cells, int goes_on
        ) noexcept nogil
        void (*find)(
            const Shape*, const LaneProgram*, const Word* cells, const Word* pane, uint64_t* found
        ) noexcept nogil
        void (*finish)(const Shape*, const LaneProgram*, const Word* cells, Word* sums) noexcept nogil
        void (*begin)(const Shape*, Word* pane) noexcept nogil
        void (*fold)(
            const Shape*, Word** cells, int windows, const Word* pane, int plain, Word* sums
        ) noexcept nogil
        void (*size)(const Shape*, Word** cells, int windows, double* counts, double* sums) noexcept nogil
        void (*scale)(const Shape*, Word* cells) noexcept nogil
        void (*limbs_step)(
            const Shape*, const Limbs*, const Taken* taken, int takes, Word** cells, int cohorts, Word* sums,
            uint64_t* found
        ) noexcept nogil
        int (*limbs_carry)(const Shape*, const Limbs*, Word* cells) noexcept nogil
        void (*limbs_find)(const Shape*, const Limbs*, const LaneProgram*, Word* cells, uint64_t* found) noexcept nogil
        int (*limbs_total)(
            const Shape*, const Limbs*, const LaneProgram*, const Group*, Word* cells, Word* sum
        ) noexcept nogil
        int (*limbs_fold)(
            const Shape*, const Limbs*, int chunk, Word** cells, int cohorts, const Word* map, int maps, long apart,
            Word* sums
        ) noexcept nogil
    int lanes_fold_words(const Shape* s)
    void lanes_measure(const Shape* s, const Word* cells, double* counts, double* sums)
    int64_t lanes_bits(double x)
    double lanes_power(int64_t bits)
    int64_t lanes_rank(int64_t bits, bint floating, bint least)
    int64_t lanes_value(int64_t rank, bint floating, bint least)
    enum:  # C says how many there are
        LANES_WIDEST
        LIVE_SLOTS
        LIVE_PLANES
    int32_t LIVE_EVENT(int kind, long place)
    int LIVE_KIND(int32_t event)
    const int LIVE_START
    const int LIVE_COUNTS
    const int LIVE_INTEGERS
    const int LIVE_DOUBLES
    const int LIVE_RANKS
    const int LIVE_END
    const int LIVE_LARGE
    const int LIVE_SMALL
    const int LIVE_SMALL_RANKS
    const int LIVE_SMALL_VALUE
    uint64_t LIVE_EDGE(int start, int end)
    int LIVE_SHAPE(int sums, int ranks, int whole)
    const uint64_t LIVE_TWO
    const uint64_t LIVE_THREE
    const uint64_t LIVE_APART
    const int LANES_NUMBER
    const int LANES_PRESENCE
    const int LANES_SUM
    const int LANES_LEAST
    const int LANES_GREATEST
    const int LANES_PLAIN_BITS
    const double LANES_LEAST_MANTISSA
    const double LANES_LEAST_VALUE
    const double LANES_MOST_VALUE
    const double LANES_MOST_MANTISSA
    const int ALIGNMENT "LANES_ALIGNMENT"
    void* aligned "lanes_aligned"(size_t size)
    void* aligned_again "lanes_aligned_again"(void* old, size_t had, size_t size)
    int LANES_START
    int LANES_STEP
    int LANES_PLAIN
    int LANES_MOST_PLANES

cdef enum Casting:       # what a plane becomes in a row
    CAST_END             # no further components
    CAST_COUNT
    CAST_LIMBS           # of an integer
    CAST_FLAG
    CAST_LEAST_INT
    CAST_GREATEST_INT
    CAST_LEAST_DOUBLE
    CAST_GREATEST_DOUBLE
    CAST_DOUBLE          # a scaled double, of a plain one
    CAST_SCALED          # the same, of a scaled one

cdef struct Cast:        # a component of a row
    int how              # Casting
    int plane            # where its plane lies behind the first one of the lane, in words
    int first            # its first word in the row
    int last             # that of its highest limb

cdef struct Growth:      # what events add to the bounds of a block
    int64_t bits         # `Block.bits`, of integers in words and of doubles
    double weight
    int64_t limb_bits    # the same of limbs
    double limb_weight
    int limbs            # in use beside carries
    bint starts          # whether they may begin a trend

cdef struct Block:       # a band and a key
    int64_t first        # windows first..last are open, none where last < first
    int64_t last
    int64_t oldest       # cohorts oldest..newest are kept: a cohort is the windows that opened at one turn
    int64_t newest
    int room             # cohorts that there is memory for
    int head             # the place of the oldest one
    int64_t* until       # [room] the last window of each
    int64_t border       # no window opens or closes before this time
    int64_t bits         # the counts of a lane, summed over a cohort's slots, are below 2^bits; 0: nothing has begun
    double weight        # magnitudes of sums, added up likewise, are at most weight * 2^bits; of scaled doubles none;
    # where integers are limbs, both bound the limbs of one cell
    Py_ssize_t bytes     # allocated
    Word* cell           # [maps + room][chunks][slots][vectors][width], or as limbs.h has it
    Py_ssize_t words     # of a cohort
    Py_ssize_t capacity  # words that there is memory for
    int limbs            # of each integer; 0 where these are words
    int used             # no integer has more in use
    bint plain           # what steps are applied to are plain doubles, which `bits` and `weight` bound
    bint mapped          # a pane map is under way
    int64_t early        # cells of cohorts up to this one are those at its beginning
    int64_t panes        # that it spans
    int64_t steps        # that the pane, or the map, has had so far

cdef struct KeySlot:        # where a band is kept for a key
    Block* block         # a null pointer: nothing is, or states hold it
    int64_t until        # states hold the band's queries, at least to this time; INT64_MIN: they do not
    bint scheduled       # an entry of the calendar points here

cdef struct Band:
    int queries
    int* query           # [queries] lane by lane
    int* lane            # [queries of the kernel] the lane of each, -1 for none
    int64_t within
    int64_t slide
    int windows          # most of them open at once
    int maps             # of the size of a window, that a pane map takes: 1 + slots, or 0 where there is none
    bint exact
    bint narrow          # whether the width of vectors was asked for
    int feature          # the Feature that its vectors are, -1 where every processor has them
    int64_t most_bits    # of the largest number that a whole plane, or a plain double, is to hold
    Shape shape
    Limbs limbs          # how integers beyond 64 bits lie; its `limbs` are what a block had last
    bint widens          # whether they may
    int64_t turns        # bursts, and events that are in none, of late
    int64_t took         # the events of these
    const Machine* machine
    int* place           # [queries][most components] the plane of each component
    int places           # most components
    Cast* cast           # [queries][places + 1]
    int* row_words       # [queries] of a row
    int* start           # [queries][most guard sets] the slot of the start under a guard set, -1 for none
    int sets             # most guard sets
    int starts           # slots of starts
    int* start_chunk     # [starts]
    int* start_slot
    int* start_lane
    LaneProgram* program  # [classes] what single events do in the lanes where they join no burst
    LaneProgram* every   # [classes] what they do in all lanes
    LaneProgram* burst[64]  # [64] by the type of a graphlet what its bursts do, by role; null pointers: nothing
    uint64_t* member_class[64]    # [64][classes][marks] by the type of a graphlet the lanes of each of its classes
    uint64_t* role[64]   # [64][roles][marks] of each of its roles
    LaneProgram finals
    int64_t* mask        # [masks][width], aligned
    Py_ssize_t words     # of a cohort
    Word* folded         # [words] a copy of a cohort that a map has been folded into, aligned
    Word** cells         # [maps + windows] what a step is applied to, or a map is folded into
    Word* input          # [inputs] of the program under way
    Taken* taken         # [takes] the classes among events of one time
    int takes
    int inputs           # most of them
    bint reached         # whether the burst under way finds the queries in a block, and not in states
    Block* block         # that block, a null pointer where nothing is to be extended
    uint64_t* found      # [marks] bits of the lanes with trends that the burst extends
    uint64_t* marked     # [marks] the same for one role
    int types            # types of graphlets with bursts are below
    uint64_t* alive      # [types][marks] the same by the type of a graphlet, as far as it is known of `alive_in`...
    const Block* alive_in  # ...since its oldest cohort began and nothing has been killed; a null pointer: of none
    int64_t alive_since  # that cohort
    int marks            # words of one bit per lane
    Word* sums           # aligned
    Py_ssize_t sums_room  # words
    KeySlot* key_slot           # [keys]
    Block* spare         # one that was freed, for the next key


cdef inline int plane_form(const Band* band, int plane) noexcept nogil:
    """Whether a plane holds integers, doubles or ranks: 0, 1 or 2."""
    return 0 if plane < band.shape.whole else 1 if plane < band.shape.linear else 2


cdef inline int plane_ordinal(const Band* band, int plane) noexcept nogil:
    """Its number among the planes that hold the like."""
    if plane < band.shape.whole:
        return plane
    return plane - (band.shape.whole if plane < band.shape.linear else band.shape.linear)


cdef enum:
    LONG_BURST = 6           # events of a turn on average, from which large integers are no lanes: bursts can wait
    MOST_TURNS = 1 << 16     # that are remembered
    MOST_WINDOWS = 8         # open at once, to which large integers are added as lanes, event by event


cdef inline void note_turn(Band* band, int64_t turns, int64_t events) noexcept nogil:
    """Remember how many events come at a time."""
    band.turns += turns
    band.took += events
    if band.turns >= MOST_TURNS:
        band.turns //= 2
        band.took //= 2


cdef inline bint becomes_limbs(const Band* band) noexcept nogil:
    """Whether integers that outgrow words are to be limbs in lanes."""
    return band.widens and band.windows <= MOST_WINDOWS and band.took < LONG_BURST * band.turns


cdef inline bint is_found(const Band* band, int lane) noexcept nogil:
    """Whether the burst under way extends a trend in a lane."""
    return band.found[lane // 64] >> lane % 64 & 1


cdef inline bint usable(double x) noexcept nogil:
    """Whether products of a double with numbers of a block neither overflow nor vanish."""
    return x == 0 or LANES_LEAST_VALUE <= fabs(x) <= LANES_MOST_VALUE


cdef inline bint rank_of(int64_t bits, bint floating, bint least, Word* rank) noexcept nogil:
    """The rank of an extremum; False where the value has none, or is equal to one with other bits."""
    cdef double value
    if floating:
        value = (<double*> &bits)[0]
        if value != value or bits == INT64_MIN:  # NaN, -0.0
            return False
    rank.i = lanes_rank(bits, floating, least)
    return rank.i != 0


cdef inline bint can_hold(const Band* band, int64_t bits, double weight) noexcept nogil:
    """Whether counts below 2^bits, and sums of magnitudes of at most weight * 2^bits, fit planes without exponents."""
    return bits <= band.most_bits and (weight == 0 or weight <= lanes_power(band.most_bits - bits))


cdef inline bint bound_raised(
    const Band* band, Block* block, int64_t bits, bint starts, double weight
) noexcept nogil:
    """Raise the bounds of a block by what events add; False, with nothing done, where planes may not hold that."""
    bits = block.bits + bits if block.bits or starts else 0
    weight += block.weight
    if not can_hold(band, bits, weight):
        return False
    block.bits = bits
    block.weight = weight
    return True
