"""PyTorch's CUDA operators compute real numbers on the stand-in device.

Device memory is host memory there. So each aten operator that is registered
for CUDA is replaced by: wait for the current stream, view the same bytes as CPU
tensors, run the CPU operator. Copies, streams, events, the allocator and all of
c10d stay untouched. What a CUDA graph captures is computed once, at capture.

Random numbers come from the CPU generator, so that a run on the CPU draws the
same; with FABRIC_CPUOPS_RNG=cuda they follow seed and offset of the CUDA
generator, as DTensor's and Megatron's trackers need it.
"""

import ctypes
import os
import re
import warnings

import torch
from torch.utils._pytree import tree_map

calls = {}  # how often each operator ran here

# The allocator's and the streams' own, and views: right as they are.
_KEEP = {
    "_local_scalar_dense",
    "_reshape_alias",
    "as_strided",
    "copy_",
    "empty.memory_format",
    "empty_strided",
    "is_set_to",
    "record_stream",
    "resize_",
    "set_",
    "view",
}
# No CPU operator has the same meaning.
_FOREIGN = (
    "_cuda",
    "_pin",
    "cslt",
    "cudnn",
    "efficient_att",
    "flash",
    "miopen",
    "nested",
    "quant",
    "sparse",
    "triton",
)
_FOLLOW_CUDA_RNG = os.environ.get("FABRIC_CPUOPS_RNG") == "cuda"
_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 1, 2, 3


def _runtime():
    """The CUDA runtime that torch has loaded, whatever its version."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        soname = re.search(r"libcudart\.so\.\d+", maps.read()).group()
    runtime = ctypes.CDLL(soname)
    runtime.cudaMemcpyAsync.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_void_p,
    ]
    return runtime


def _host(tensor):
    """The bytes of a CUDA tensor as a CPU tensor."""
    storage = tensor.untyped_storage()
    view = torch.empty(0, dtype=tensor.dtype, device="cpu")
    if not storage.nbytes() or not tensor.numel():
        return view.new_empty(tensor.shape)
    memory = (ctypes.c_byte * storage.nbytes()).from_address(storage.data_ptr())
    flat = torch.frombuffer(memory, dtype=torch.uint8)
    view.set_(
        flat.untyped_storage(),
        tensor.storage_offset(),
        tensor.shape,
        tensor.stride(),
    )
    if tensor.is_conj():
        view = torch._conj(view)
    return torch._neg_view(view) if tensor.is_neg() else view


def _device(tensor, device):
    """A CPU tensor as a new one on the device."""
    copy = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device
    )
    _host(copy).copy_(tensor)
    return copy


def _wait(device):
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream(device).synchronize()


class _CudaRandom:
    """Draws from the CPU generator what the CUDA generator's state says."""

    def __init__(self, generator, device):
        self.generator = generator or torch.cuda.default_generators[device.index]

    def __enter__(self):
        self.state = torch.get_rng_state()
        offset = self.generator.get_offset()
        seed = self.generator.initial_seed() * 1000003 + offset
        torch.default_generator.manual_seed(seed % (1 << 62))
        self.generator.set_offset(offset + 4)

    def __exit__(self, *_):
        torch.set_rng_state(self.state)


class _Call:
    """One call of an operator: its arguments on their way down and up."""

    def __init__(self):
        self.device = None
        self.generator = None
        self.given = {}  # id of a CPU view: the view and its CUDA tensor

    def down(self, value):
        if isinstance(value, torch.Tensor) and value.is_cuda:
            self.device = value.device
            view = _host(value)
            self.given[id(view)] = view, value
            return view
        if isinstance(value, torch.Generator):
            self.generator = value if value.device.type == "cuda" else None
            return None
        if isinstance(value, torch.device):
            if value.type == "cuda":
                self.device = value
            return torch.device("cpu")
        return value

    def settle(self):
        """The device of the call, if no argument has told it."""
        index = self.device.index if self.device else None
        if index is None:
            index = torch.cuda.current_device()
        self.device = torch.device("cuda", index)

    def resized(self):
        """Out arguments that the operator gave another shape."""
        for view, tensor in self.given.values():
            if view.shape != tensor.shape:
                tensor.resize_(view.shape)
                _host(tensor).copy_(view)

    def up(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in self.given:
            return self.given[id(value)][1]
        return _device(value, self.device)


def _on_cpu(op, function, packet):
    draws = torch.Tag.nondeterministic_seeded in op.tags
    tensors = [
        i for i, a in enumerate(op._schema.arguments) if str(a.type) == "Tensor"
    ]

    def chosen(args):
        """x % 2 comes with the 2 as a number: another overload takes that."""
        for i in tensors:
            if i < len(args) and isinstance(args[i], (int, float, complex)):
                return packet
        return function

    def run(*args, **kwargs):
        call = _Call()
        down_args, down_kwargs = tree_map(call.down, (args, kwargs))
        call.settle()
        calls[op] = calls.get(op, 0) + 1
        _wait(call.device)
        if draws and _FOLLOW_CUDA_RNG:
            with _CudaRandom(call.generator, call.device):
                result = chosen(down_args)(*down_args, **down_kwargs)
        else:
            result = chosen(down_args)(*down_args, **down_kwargs)
        call.resized()
        return tree_map(call.up, result)

    return run


def _rms_norm_backward(grad, x, shape, rstd, weight, mask):
    """Has no CPU operator."""
    inner = list(range(x.dim() - len(shape), x.dim()))
    outer = list(range(x.dim() - len(shape)))
    normal = x.float() * rstd
    scaled = grad.float() * (1.0 if weight is None else weight.float())
    mean = (scaled * normal).mean(inner, keepdim=True)
    dx = rstd * (scaled - normal * mean)
    dw = (grad.float() * normal).sum(outer)
    return (
        dx.to(x.dtype) if mask[0] else None,
        dw.to(x.dtype) if mask[1] and weight is not None else None,
    )


_OWN = {"_fused_rms_norm_backward": _rms_norm_backward}


def _is_plain_copy(dst, src):
    return (
        dst.dtype == src.dtype
        and dst.shape == src.shape
        and dst.is_contiguous()
        and src.is_contiguous()
        and dst.is_conj() == src.is_conj()
        and dst.is_neg() == src.is_neg()
    )


def _queue_copy(runtime, dst, src, stream, non_blocking):
    """The memory copy that the real operator would queue."""
    if not dst.is_cuda:
        kind = _DEVICE_TO_HOST
    else:
        kind = _DEVICE_TO_DEVICE if src.is_cuda else _HOST_TO_DEVICE
    bytes_ = dst.numel() * dst.element_size()
    runtime.cudaMemcpyAsync(
        dst.data_ptr(), src.data_ptr(), bytes_, kind, stream.cuda_stream
    )
    if not dst.is_cuda and not non_blocking:
        stream.synchronize()


def _copier():
    runtime = _runtime()

    def copy_(dst, src, non_blocking=False):
        device = dst.device if dst.is_cuda else src.device
        if _is_plain_copy(dst, src):
            if dst.numel():
                stream = torch.cuda.current_stream(device)
                _queue_copy(runtime, dst, src, stream, non_blocking)
            return dst
        _wait(device)
        to = _host(dst) if dst.is_cuda else dst
        to.copy_(_host(src) if src.is_cuda else src)
        return dst

    return copy_


def _replaceable():
    """Name, overload and packet of each operator that the CPU can run."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
    for full in [*names, "aten::convolution"]:
        namespace, name = full.split("::")
        base, _, overload = name.partition(".")
        if namespace != "aten" or name in _KEEP or base in _KEEP:
            continue
        if any(word in base for word in _FOREIGN):
            continue
        packet = getattr(torch.ops.aten, base, None)
        op = getattr(packet, overload or "default", None)
        if op is None:
            continue
        returns = op._schema.returns
        if any(r.alias_info and not r.alias_info.is_write for r in returns):
            continue  # a view
        yield name, base, op, packet


def install():
    """Replaces the operators; they stay so as long as the result lives."""
    library = torch.library.Library("aten", "IMPL")
    for name, base, op, packet in _replaceable():
        own = _OWN.get(base)
        run = _on_cpu(op, own or op, own or packet)
        library.impl(name, run, "CUDA", allow_override=True)
    library.impl("copy_", _copier(), "CUDA", allow_override=True)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    return library


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _library = install()
