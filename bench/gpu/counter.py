# SPDX-License-Identifier: Apache-2.0
"""counter.py FILE [--gib N] [--steps N] [--pause S] [--save FILE] [--deaf] [--managed]

A PyTorch program that counts its steps in GPU memory, among N GiB filled with a pattern. After each
step it writes one line to FILE: steps by the GPU, steps by the CPU, "ok" when both agree and a sample of
the pattern is still right. So whoever suspended it can tell whether it lost anything.

--steps   ends after so many steps (0: never) and checks the whole pattern first
--pause   seconds between steps
--save    at SIGUSR1 or SIGTERM saves its step there and ends; starts from it when the file is there
--deaf    ignores SIGUSR1 and SIGTERM
--managed takes 64 MiB of managed memory, too, which the driver cannot suspend
"""
import argparse
import ctypes
import os
import signal
import sys
import time


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--gib", type=float, default=1)
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--pause", type=float, default=0.01)
    p.add_argument("--save")
    p.add_argument("--deaf", action="store_true")
    p.add_argument("--managed", action="store_true")
    return p.parse_args()


def write(path, text):
    """Whole or not at all."""
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.replace(path + ".new", path)


def take_managed_memory():
    cuda, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    rc = cuda.cuMemAllocManaged(ctypes.byref(at), ctypes.c_size_t(64 << 20), 1)
    if rc != 0:
        sys.exit(f"counter: no managed memory ({rc})")


def main():
    a = arguments()
    stop = []
    for s in (signal.SIGUSR1, signal.SIGTERM):
        if a.deaf:
            signal.signal(s, signal.SIG_IGN)
        elif a.save:
            signal.signal(s, lambda *_: stop.append(1))
    import torch  # late: signals are set first

    cuda = torch.device("cuda")
    start = int(open(a.save, encoding="ascii").read()) if a.save and os.path.exists(a.save) else 0
    count = torch.full((1,), start, dtype=torch.int64, device=cuda)
    words = int(a.gib * 2**30) // 8
    block = 1 << 27  # 1 GiB of words each: the pattern takes no memory of its own
    memory = [torch.arange(i, min(i + block, words), dtype=torch.int64, device=cuda)
              for i in range(0, words, block)]
    work = torch.randn(1024, 1024, device=cuda)
    if a.managed:
        take_managed_memory()
    step = start
    while not stop and (a.steps == 0 or step < a.steps):
        count += 1
        step += 1
        work = torch.tanh(work @ work)
        which = step % len(memory) if memory else 0
        place = (step * 7919) % len(memory[which]) if memory else 0
        good = not memory or int(memory[which][place]) == which * block + place
        write(a.file, f"{int(count)} {step} {'ok' if good and int(count) == step else 'BAD'}\n")
        time.sleep(a.pause)
    if stop:
        write(a.save, str(step))
        sys.exit(0)
    for i, m in enumerate(memory):
        for at in range(0, len(m), 1 << 24):
            part = m[at:at + (1 << 24)]
            want = torch.arange(i * block + at, i * block + at + len(part), device=cuda)
            if not torch.equal(part, want):
                write(a.file, f"{int(count)} {step} BAD\n")
                sys.exit(1)
    write(a.file, f"{int(count)} {step} done\n")


main()
