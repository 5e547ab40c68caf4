"""What the libraries of an installed torch import from NVIDIA's.

imports.py SITE OUT: for each NVIDIA library that torch links, a file
OUT/SONAME.imports with one "symbol version" a line.
"""

import pathlib
import re
import subprocess
import sys

NVIDIA = re.compile(r"lib(cu|nv|nccl)")

# Whose an unversioned symbol is can only be told by its name.
OWNER = [
    (re.compile("nccl"), "libnccl.so.2"),
    (re.compile("cuFile"), "libcufile.so.0"),
    (re.compile("cusparseLt"), "libcusparseLt.so.0"),
    (re.compile("nvshmem"), "libnvshmem_host.so.3"),
    (re.compile("cu[A-Z]"), "libcuda.so.1"),
]


def output(*command):
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout


def needed(library):
    return re.findall(r"NEEDED.*\[(.*?)\]", output("readelf", "-d", library))


def versions(library):
    """The library that each version node belongs to."""
    owner, nodes = None, {}
    for line in output("readelf", "-V", "-W", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            owner = found.group(1)
        elif owner and (found := re.search(r"Name: (\S+)", line)):
            nodes[found.group(1)] = owner
    return nodes


def owner_of(symbol, version, nodes):
    if version:
        return nodes.get(version, "")
    return next((lib for name, lib in OWNER if name.match(symbol)), "")


def imports(libraries):
    found = {}
    nodes = {}
    for library in libraries:
        for soname in filter(NVIDIA.match, needed(library)):
            found.setdefault(soname, {})
        nodes.update(versions(library))
    for library in libraries:
        for line in output("nm", "-D", "--undefined-only", library).splitlines():
            kind, name = line.split()[-2:]
            symbol, _, version = name.partition("@")
            version = version.lstrip("@")
            owner = owner_of(symbol, version, nodes)
            if kind in "Uw" and NVIDIA.match(owner):
                found.setdefault(owner, {})[symbol] = version
    return found


def main():
    site, out = map(pathlib.Path, sys.argv[1:])
    libraries = sorted((site / "torch/lib").glob("*.so"))
    for soname, symbols in imports(libraries).items():
        lines = (f"{s} {v}\n" for s, v in sorted(symbols.items()))
        (out / f"{soname}.imports").write_text("".join(lines))


main()
