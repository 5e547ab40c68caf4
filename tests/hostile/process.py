"""process.py [WAY...]: processes that fork, exec, abort, race, end in the middle,
or have no room for anything."""
import sys

import ways


def main():
    for name in sys.argv[1:] or ways.WAYS:
        ways.check(name)


if __name__ == "__main__":
    main()
