/* Live lanes: the queries that the events of a whole window can complete, side by side in registers (window.pyx).
 *
 * Of a chunk of lanes every cell is a vector, and all of them stay in registers from the first event of a window to the
 * last. So there is no program to be read, as in lanes.h, but a table: for each class of events and each way from one
 * cell to another the bits of the lanes that go it. The counts of the first plane say how often the values of an event
 * count in the others.
 *
 * Ways are edges of a graph that all lanes of a chunk have in common. Graphs that many patterns have, with the planes that
 * many queries have, are compiled as constants.
 */
#ifndef HAMLET_ACTIVE_QUERIES_H
#define HAMLET_ACTIVE_QUERIES_H

#define LIVE_SLOTS 7                       /* most cells of a lane */
#define LIVE_PLANES 16                     /* as LANES_MOST_PLANES */
#define LIVE_START 7                       /* the empty trend, as where an edge begins */
#define LIVE_EDGE(from, to) ((uint64_t)1 << (8 * (from) + (to)))

/* (SEQ(X+, Y+))+, and SEQ((SEQ(X+, Y+))+, Z), with all that is simpler */
#define LIVE_TWO \
    (LIVE_EDGE(LIVE_START, 0) | LIVE_EDGE(0, 0) | LIVE_EDGE(0, 1) | LIVE_EDGE(1, 1) | LIVE_EDGE(1, 0))
#define LIVE_THREE (LIVE_TWO | LIVE_EDGE(1, 2))
/* the same where what a negated pattern empties at the end is kept apart: SEQ(X, Y+, NOT Z) */
#define LIVE_APART (LIVE_THREE | LIVE_EDGE(0, 2))

/* Counts, how many planes of sums in the form of the counts, and of ranks; whether these are integers. */
#define LIVE_SHAPE(sums, ranks, whole) ((sums) * 4 + (ranks) * 2 + (whole))

#define LIVE_SMALL_VALUE (1 << 30)         /* values of extrema are below it, and above its negative */

/* An event: its class, and its place among those whose inputs there are. */
#define LIVE_EVENT(kind, place) ((int32_t)((place) << 6 | (kind)))
#define LIVE_KIND(event) ((event) & 63)
#define LIVE_PLACE(event) ((event) >> 6)

#define LIVE_END 255u /* of an event that is the last one of its time; else 0 */

/* Of a window: its counts and sums may need 64 bits, they are below 2^31, its extrema are small as well */
enum { LIVE_LARGE, LIVE_SMALL, LIVE_SMALL_RANKS };
enum { LIVE_COUNTS, LIVE_INTEGERS, LIVE_DOUBLES, LIVE_RANKS }; /* what a plane holds */

typedef struct {
    int holds;
    int binds;    /* inputs that one event adds to it, at most */
    int bind;     /* where they stand in a step: of each its number, and the bits of the lanes for each slot */
} live_plane;

typedef struct {
    int lanes, slots, planes;
    int whole;             /* whether counts are integers, or else doubles */
    uint64_t kinds;        /* bits of the classes whose events do something to its lanes */
    int kills;             /* whether some event empties a cell */
    int shape;             /* LIVE_SHAPE where all planes can be taken at once, or -1 */
    unsigned bound;        /* bits of the slots where some event's values go into a plane */
    uint64_t edges;
    live_plane plane[LIVE_PLANES];
    uint8_t begin[LIVE_SLOTS]; /* bits of the lanes that have one trend there from the start */
    uint8_t final[LIVE_SLOTS]; /* and of those whose trends are complete there */
    int stride;
    /* [classes][stride], bits of lanes: [from: slots, then the empty trend][to: slots], of cells that are emptied
     * [slots], then the binds of all planes */
    uint8_t *step;
} live_chunk;

#endif
