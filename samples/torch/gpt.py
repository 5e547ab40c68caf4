"""A tiny GPT and text for it, deterministic on any number of ranks."""
import torch
from torch import nn
from torch.nn import functional as F

WORDS = 128


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.head_width = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, _ = x.shape
        # As many heads as this rank has: all, or its share.
        qkv = self.qkv(self.norm1(x)).view(batch, length, -1, 3 * self.head_width)
        q, k, v = qkv.transpose(1, 2).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Stage number stage of stages; one stage is the whole model."""

    def __init__(self, args, stage=0, stages=1):
        super().__init__()
        torch.manual_seed(args.seed)
        embed = nn.Embedding(WORDS, args.width)
        place = nn.Embedding(args.length, args.width)
        blocks = [Block(args.width, args.heads) for _ in range(args.layers)]
        head = nn.Linear(args.width, WORDS)
        share = args.layers // stages
        self.blocks = nn.ModuleList(blocks[stage * share:(stage + 1) * share])
        self.embed, self.place = (embed, place) if stage == 0 else (None, None)
        self.head = head if stage == stages - 1 else None

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x) + self.place.weight[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(x)


def text(args, step):
    """Words and the words after them: sequences that count in strides."""
    g = torch.Generator().manual_seed(1000 * args.seed + step)
    first = torch.randint(0, WORDS, (args.batch, 1), generator=g)
    stride = torch.randint(1, 8, (args.batch, 1), generator=g)
    words = (first + stride * torch.arange(args.length + 1)) % WORDS
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def loss_of(logits, wanted):
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def optimizer_of(model, args):
    # One tensor at a time: a list may not mix shared and whole ones.
    return torch.optim.AdamW(model.parameters(), lr=args.lr, foreach=False)
