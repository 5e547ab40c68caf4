"""Has fabric_cpuops follow the first import of torch, whoever makes it.

A .pth file of the virtual environment imports this in every process that has
FABRIC_CPUOPS=1; one that never needs torch does not pay for it.
"""

import importlib.util
import sys


class _AfterTorch:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            importlib.import_module("fabric_cpuops")

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _AfterTorch())
