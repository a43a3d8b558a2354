#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lightning as on a Slurm cluster: nothing of stoker in it, Lightning does all by itself.

    PATH=$PATH:DIR stoker submit slurm.sbatch      # DIR: made by `stoker slurm-shims DIR`

On USR1 Lightning saves hpc_ckpt_N.ckpt, calls `scontrol requeue`, and the next start resumes from it.
"""
import os
import signal
import time

import lightning as L
import torch
from lightning.pytorch.plugins.environments import SLURMEnvironment
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = int(os.environ.get("STEPS", "2000"))
PAUSE = float(os.environ.get("PAUSE", "0"))     # seconds per step, to watch it


class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        time.sleep(PAUSE)
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def on_train_start(self):
        print("rank %d of %d starts at step %d" % (self.global_rank, self.trainer.world_size, self.global_step),
              flush=True)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if self.global_rank == 0 and self.global_step % 10 == 0:
            print("step", self.global_step, flush=True)


def main():
    torch.manual_seed(1)
    x = torch.randn(8192, 32)
    data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64, shuffle=True)
    tasks = int(os.environ.get("SLURM_NTASKS", "1"))
    trainer = L.Trainer(max_steps=STEPS, devices=tasks, strategy="ddp" if tasks > 1 else "auto", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False,
                        plugins=[SLURMEnvironment(requeue_signal=signal.SIGUSR1)] if tasks > 1 else None)
    trainer.fit(Line(), data)
    if trainer.is_global_zero:
        print("done at step", trainer.global_step, flush=True)


if __name__ == "__main__":
    main()
