# SPDX-License-Identifier: Apache-2.0
"""trainer.py FILE --steps N [--seed N] [--width N] [--gib N] [--pause S] [--every N] [--marks N] [--graph 1]

A small PyTorch training that comes out the same, bit for bit, whenever it is run with the same seed: an MLP of eight
layers, batches made on the GPU. So whoever interrupted it can tell whether it lost, repeated or changed anything.

FILE         a line "STEP SECONDS" for every step (monotonic clock, the same for all processes of a machine)
FILE.done    at its end: {"steps", "loss", "sum" (SHA-256 of the weights), "memory" ("ok" or "BAD")}
FILE.marks   with --marks: the sum after every so many steps
--gib        holds so many GiB beside that, filled with a pattern that is checked at the end
--pause      seconds between steps
--graph      the GPU does a step from one call (a CUDA graph): it is the GPU that takes the time, not the CPU
--every      writes a line (and waits for the GPU) after every so many steps only
"""
import argparse
import ctypes
import hashlib
import json
import os
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before torch: sums in the same order every time
import torch  # noqa: E402

LAYERS, BATCH, BLOCK = 8, 64, 1 << 27


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--steps", type=int, required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--gib", type=float, default=0)
    p.add_argument("--pause", type=float, default=0)
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--marks", type=int, default=0)
    p.add_argument("--graph", type=int, default=0)
    return p.parse_args()


def checksum(net):
    h = hashlib.sha256()
    for p in net.parameters():
        t = p.detach().cpu().contiguous()
        h.update(ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()))
    return h.hexdigest()


def memory_is_right(memory, cuda):
    for i, m in enumerate(memory):
        for at in range(0, len(m), 1 << 24):
            part = m[at:at + (1 << 24)]
            if not torch.equal(part, torch.arange(i * BLOCK + at, i * BLOCK + at + len(part), device=cuda)):
                return False
    return True


class Steps:
    """One call makes one step."""

    def __init__(self, net, width, seed, cuda, graph):
        self.net, self.loss = net, None
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        self.batches = torch.Generator(device=cuda).manual_seed(seed)
        self.x = torch.empty(BATCH, width, device=cuda)
        self.graph = self.record() if graph else None

    def learn(self):
        self.loss = ((self.net(self.x) - torch.sin(self.x)) ** 2).mean()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss.backward()
        self.optimizer.step()

    def record(self):
        """What was run once can be recorded. The steps before that are no steps of the training."""
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                self.x.normal_(generator=self.batches)
                self.learn()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.learn()
        return graph

    def __call__(self):
        self.x.normal_(generator=self.batches)
        if self.graph:
            self.graph.replay()
        else:
            self.learn()


def write(path, value):
    """Whole or not at all."""
    with open(path + ".new", "w", encoding="ascii") as f:
        json.dump(value, f)
    os.replace(path + ".new", path)


def main():
    a = arguments()
    cuda = torch.device("cuda")
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(a.seed)
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(a.width, a.width), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers).to(cuda)
    step_once = Steps(net, a.width, a.seed, cuda, a.graph)
    words = int(a.gib * 2**30) // 8
    memory = [torch.arange(i, min(i + BLOCK, words), dtype=torch.int64, device=cuda) for i in range(0, words, BLOCK)]
    marks = {}
    with open(a.file, "a", encoding="ascii", buffering=1) as f:
        for step in range(1, a.steps + 1):
            step_once()
            if step % a.every == 0 or step == a.steps:
                torch.cuda.synchronize()
                f.write(f"{step} {time.monotonic():.6f}\n")
            if a.marks and step % a.marks == 0:
                marks[step] = checksum(net)
            if a.pause:
                time.sleep(a.pause)
    if a.marks:
        write(a.file + ".marks", marks)
    write(a.file + ".done", {"steps": a.steps, "loss": repr(step_once.loss.item()), "sum": checksum(net),
                             "memory": "ok" if memory_is_right(memory, cuda) else "BAD"})


main()
