from collections.abc import Callable

from bench.baselines._automaton import Automaton
from bench.baselines.strategy import Counter

Counters: Callable[[Automaton], Counter]  # a class
