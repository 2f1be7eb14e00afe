from collections.abc import Callable

from bench.baselines._automaton import Automaton
from bench.baselines.strategy import Counter

Constructor: Callable[[Automaton], Counter]  # a class
