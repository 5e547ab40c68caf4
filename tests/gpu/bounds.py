"""Means of paired differences and their 95 % bounds."""
import math
import statistics

Z = 1.6449  # one-sided 95 % point of the normal distribution


def t_quantile(degrees):
    """One-sided 95 % point of Student's distribution, by Cornish and Fisher;
    5 % off at 2 degrees of freedom, better beyond."""
    v = degrees
    return Z + (Z ** 3 + Z) / (4 * v) + \
        (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * v * v)


class Bound:
    """The mean of n differences, and what it is at most."""

    def __init__(self, differences):
        self.n = len(differences)
        self.mean = statistics.mean(differences)
        spread = statistics.stdev(differences) / math.sqrt(self.n)
        self.upper = self.mean + t_quantile(self.n - 1) * spread

    def text(self, unit, scale=1.0):
        return "%.2f %s (upper 95 %% bound %.2f)" % (
            self.mean * scale, unit, self.upper * scale)
