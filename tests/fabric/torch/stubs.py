"""Loud bodies for what a library must export and nobody implements.

stubs.py SONAME IMPORTS [STAND_IN]: prints C with a function for each symbol in
IMPORTS (see imports.py) that the library STAND_IN does not define. It says
once that it is not implemented, and aborts when FABRIC_STRICT=1.
"""

import subprocess
import sys

HEAD = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long unimplemented(const char *name, int *said)
{
    const char *strict = getenv("FABRIC_STRICT");

    if (!*said)
        fprintf(stderr, "fabric: %%s of %s is not implemented\\n", name);
    *said = 1;
    if (strict && !strcmp(strict, "1"))
        abort();
    return %d;
}
"""

BODY = """
long %s(void)
{
    static int said;
    return unimplemented("%s", &said);
}
"""

# An error that callers of the library understand; else 1 is as good as any.
ERROR = {"libcuda.so.1": 801, "libcudart.so.13": 801, "libnccl.so.2": 5}


def defined(library):
    command = ["nm", "-D", "--defined-only", library]
    lines = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}


def main():
    soname, path, *stand_in = sys.argv[1:]
    known = defined(stand_in[0]) if stand_in else set()
    print(HEAD % (soname, ERROR.get(soname, 1)), end="")
    for line in open(path, encoding="ascii"):
        symbol = line.split()[0]
        if symbol not in known:
            print(BODY % (symbol, symbol), end="")


main()
