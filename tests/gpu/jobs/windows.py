"""windows.py: trains a transformer with DDP on one rank, STEPS steps for each
line it reads, and answers with the seconds and the CPU seconds they took."""
import os
import sys
import time

import torch
from torch.nn.parallel import DistributedDataParallel

import common
from common import gpt

SMALL = {"steps": 4, "layers": 2}
LARGE = {"steps": 20, "layers": 12, "width": 768, "heads": 12, "length": 512,
         "batch": 16}


def main():
    sizes = dict(LARGE if common.REAL_GPU else SMALL)
    steps = sizes.pop("steps")
    torch.set_float32_matmul_precision("high")
    device = common.start()
    args = common.shape(**sizes)
    model = DistributedDataParallel(gpt.GPT(args).to(device), [device.index],
                                    bucket_cap_mb=5)
    optimizer = gpt.optimizer_of(model, args)
    words, wanted = (x.to(device) for x in gpt.text(args, 0))

    def window():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = gpt.loss_of(model(words), wanted)
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()

    window()  # the first is not like the others
    print("ready %d" % steps, flush=True)
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.monotonic()
        window()
        print(time.monotonic() - wall, time.process_time() - cpu, flush=True)
    common.MARKS.clear()
    common.finish()


if __name__ == "__main__":
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
                      MASTER_ADDR="127.0.0.1")
    main()
