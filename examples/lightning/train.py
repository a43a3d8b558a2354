#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lightning: one callback, and the Trainer does the rest.

    stoker submit job.yaml

Saves last.ckpt when stoker advises it or stops the job, and resumes from it. On several GPUs rank 0
decides; strategy.broadcast tells the others.
"""
import os

import lightning as L
import stoker
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHECKPOINT = os.path.abspath("last.ckpt")


class Stoker(L.Callback):
    """Progress, checkpoints at the advised interval, and a clean leave."""

    def __init__(self, path):
        self.path = path
        self.run = stoker.current()
        self.leave = False

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        self.run.progress(step, trainer.estimated_stepping_batches, loss=float(outputs["loss"]))
        if trainer.strategy.broadcast(self.run.should_checkpoint()):
            with self.run.checkpointing(step):
                trainer.save_checkpoint(self.path)      # called on every rank
            if trainer.strategy.broadcast(self.run.should_stop()):
                self.leave = trainer.should_stop = True


class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    torch.manual_seed(1)
    x = torch.randn(8192, 32)
    data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64, shuffle=True)
    hook = Stoker(CHECKPOINT)
    # min_epochs=0: should_stop is obeyed at once, not at the end of an epoch
    trainer = L.Trainer(max_epochs=20, min_epochs=0, callbacks=[hook], enable_checkpointing=False, logger=False)
    trainer.fit(Line(), data, ckpt_path=CHECKPOINT if os.path.exists(CHECKPOINT) else None)
    if hook.leave:
        hook.run.requeue()


if __name__ == "__main__":
    main()
