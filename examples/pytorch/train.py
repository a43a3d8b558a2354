#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch, one process or a gang of them (DistributedDataParallel).

    stoker submit job.yaml        # one GPU
    stoker submit gang.yaml       # two processes, one GPU each
    python3 train.py              # by hand

stoker gives each process of a gang RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, which
is all that init_process_group needs. Rank 0 decides when to save and tells the others: each for
itself, they might disagree by a step and hang.
"""
import argparse
import os

import stoker
import torch
import torch.distributed as dist
from torch import nn


def say_to_all(value, device):
    """What rank 0 says, on every rank."""
    if not dist.is_initialized():
        return value
    flag = torch.tensor([int(value)], device=device)
    dist.broadcast(flag, src=0)
    return bool(flag.item())


def save(path, step, model, optimizer):
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--checkpoint", default="pytorch.pt")
    args = parser.parse_args()

    cuda = torch.cuda.is_available()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    rank = dist.get_rank() if dist.is_initialized() else 0
    # A task sees only its own GPUs: usually the first of those is the right one.
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local % torch.cuda.device_count()) if cuda else torch.device("cpu")

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    if os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    net = nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
    teacher = torch.randn(64, 1, generator=torch.Generator().manual_seed(2)).to(device)

    run = stoker.current()
    print("rank", rank, "on", device, "starts at step", step, flush=True)
    while step < args.steps:
        draw = torch.Generator().manual_seed(step * 1000 + rank)
        x = torch.randn(256, 64, generator=draw).to(device)
        loss = nn.functional.mse_loss(net(x), torch.tanh(x @ teacher))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 10:
            continue        # asking rank 0 costs a broadcast: not every step
        run.progress(step, args.steps, loss=loss.item())
        if say_to_all(run.should_checkpoint(), device):
            with run.checkpointing(step):
                if rank == 0:
                    save(args.checkpoint, step, model, optimizer)
                if dist.is_initialized():
                    dist.barrier()
            if say_to_all(run.should_stop(), device):
                print("rank", rank, "leaves at step", step, flush=True)
                run.requeue()
    if rank == 0:
        save(args.checkpoint, step, model, optimizer)
        print("loss %.6f after %d steps" % (loss.item() if step else float("nan"), step))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
