"""skip.py: rank 1 never comes to the eleventh all-reduce; the others wait until
their watchdogs end them."""
import datetime
import os
import time

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device,
                        timeout=datetime.timedelta(seconds=5))
for step in range(20):
    x = torch.ones(1000 + step, device=device)
    if rank == 1 and step == 10:
        time.sleep(600)
    dist.all_reduce(x)
    torch.cuda.synchronize()
