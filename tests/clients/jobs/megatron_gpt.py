"""megatron_gpt.py TP PP [sp]: a tiny GPT on megatron-core, 1F1B. Weights depend on
nothing but a parameter's name in the whole model, data on nothing but the
step, so every layout has the same losses. Each rank writes its process groups,
as Megatron names them, to $GROUPS/<rank>.json."""
import json
import os
import re
import sys
import zlib

import torch
import torch.distributed as dist
from megatron.core import parallel_state as ps
from megatron.core.distributed import (DistributedDataParallel,
                                       DistributedDataParallelConfig,
                                       finalize_model_grads)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.transformer_block import \
    TransformerBlockSubmodules

WIDTH, LENGTH, WORDS, LAYERS, BATCH, MICRO_BATCHES, STEPS = \
    64, 32, 128, 4, 2, 8, 3


class Norm(torch.nn.LayerNorm):
    """The norm of the local specification refuses sequence parallelism; this
    one marks its weights for it."""

    def __init__(self, config, hidden_size, eps=1e-5, **_):
        super().__init__(hidden_size, eps=eps)
        for p in self.parameters():
            p.sequence_parallel = config.sequence_parallel


def config_of(tp, pp, sp):
    return TransformerConfig(
        num_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=4,
        use_cpu_initialization=True, hidden_dropout=0., attention_dropout=0.,
        tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp,
        sequence_parallel=sp, pipeline_dtype=torch.float32,
        params_dtype=torch.float32, persist_layer_norm=False,
        bias_dropout_fusion=False, masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        finalize_model_grads_func=finalize_model_grads)


def fill(name, p):
    """What the parameter of this name holds in every layout."""
    tp = ps.get_tensor_model_parallel_world_size()
    split = getattr(p, "tensor_model_parallel", False) and tp > 1
    axis, shape = (p.partition_dim if split else 0), list(p.shape)
    shape[axis] *= tp if split else 1
    g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    whole = torch.randn(shape, generator=g) * .05
    if "norm" in name and name.endswith("weight"):
        whole += 1.
    if split:
        whole = whole.chunk(tp, axis)[ps.get_tensor_model_parallel_rank()]
    p.data.copy_(whole)


def model_of(config, pp):
    spec = get_gpt_layer_local_spec()
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
    block = TransformerBlockSubmodules(layer_specs=[spec] * (LAYERS // pp),
                                       layer_norm=Norm)
    model = GPTModel(config, block, WORDS, LENGTH,
                     pre_process=ps.is_pipeline_first_stage(),
                     post_process=ps.is_pipeline_last_stage(),
                     share_embeddings_and_output_weights=True)
    layers = dict(model.named_modules())
    for name, p in model.named_parameters():
        found = re.match(r"decoder\.layers\.(\d+)\.", name)
        if found:
            number = layers[found.group(0)[:-1]].layer_number - 1
            name = "decoder.layers.%d.%s" % (number, name[found.end():])
        if name == "output_layer.weight":  # shared between the stages
            name = "embedding.word_embeddings.weight"
        fill(name, p)
    return model.cuda()


def batches(replica, count):
    """The micro-batches of a replica; the same in every step."""
    g = torch.Generator().manual_seed(7)
    words = torch.randint(0, WORDS, (MICRO_BATCHES, BATCH, LENGTH + 1),
                          generator=g)
    for batch in words[replica * count:][:count]:
        yield batch.cuda()


def forward(batch_iterator, net):
    words = next(batch_iterator)
    mask = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
    place = torch.arange(LENGTH)[None].expand(BATCH, LENGTH)
    out = net(words[:, :-1].contiguous(), place.cuda(), mask[None, None].cuda(),
              labels=words[:, 1:].contiguous())

    def loss_of(x):
        loss = x.float().mean()
        return loss, {"loss": loss.detach().clone()}

    return out, loss_of


def write_groups():
    """PyTorch's name, which its communicator has, and Megatron's of each
    group."""
    if "GROUPS" not in os.environ:
        return
    world = dist.distributed_c10d._world
    groups = {name: g.group_desc for g, name in world.pg_names.items()}
    path = os.path.join(os.environ["GROUPS"], "%d.json" % dist.get_rank())
    with open(path, "w") as f:
        json.dump(groups, f)


def main():
    tp, pp, sp = int(sys.argv[1]), int(sys.argv[2]), "sp" in sys.argv[3:]
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    ps.initialize_model_parallel(tp, pp, create_gloo_process_groups=False)
    model_parallel_cuda_manual_seed(1)
    config, dp = config_of(tp, pp, sp), ps.get_data_parallel_world_size()
    count = MICRO_BATCHES // dp

    net = DistributedDataParallel(config, DistributedDataParallelConfig(),
                                  model_of(config, pp))
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-2, params_dtype=torch.float32,
                        clip_grad=1.0), [net], use_gloo_process_groups=False)
    step = get_forward_backward_func()
    for _ in range(STEPS):
        net.zero_grad_buffer()
        optimizer.zero_grad()
        losses = step(
            forward_step_func=forward, model=[net],
            data_iterator=batches(ps.get_data_parallel_rank(), count),
            num_microbatches=count, seq_length=LENGTH, micro_batch_size=BATCH,
            forward_only=False)
        optimizer.step()
        if losses:
            loss = torch.stack([x["loss"] for x in losses]).mean()
            dist.all_reduce(loss, group=ps.get_data_parallel_group())
            if dist.get_rank() == dist.get_world_size() - 1:
                print("loss %.5f" % (loss.item() / dp), flush=True)
    torch.cuda.synchronize()
    dist.barrier()
    write_groups()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
