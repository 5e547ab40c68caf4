"""restart.py: in the first of torchrun's tries rank 1 is killed in the middle
of training; the second ends well."""
import os
import signal
import time

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
first_try = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
x = torch.ones(1000, device=device)
for step in range(20):
    if first_try and step == 10 and rank == 0:
        time.sleep(3)  # so that the other waits for it
    dist.all_reduce(x, dist.ReduceOp.AVG)
    if first_try and step == 10 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    torch.cuda.synchronize()
dist.barrier()
dist.destroy_process_group()
print("rank %d fine, %s try" % (rank, "first" if first_try else "second"))
