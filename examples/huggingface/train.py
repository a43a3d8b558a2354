#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Trainer: a callback that asks the Trainer to save and stop.

    stoker submit job.yaml                        # one GPU
    stoker submit --tasks 2 job.yaml              # two processes with a GPU each

The model is a small GPT-2 with random weights on random tokens, so nothing is downloaded. With several
processes rank 0 decides when to save and tells the others: each for itself, they might disagree and hang.
"""
import os

import stoker
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

OUT = "hf-out"


def say_to_all(value):
    """What rank 0 says, on every rank."""
    said = [value]
    if torch.distributed.is_initialized():
        torch.distributed.broadcast_object_list(said, src=0)
    return said[0]


class Stoker(TrainerCallback):
    """The saving happens between on_step_end and on_save: that is what is measured."""

    def __init__(self):
        self.run = stoker.current()
        self.saving = None
        self.leave = False

    def on_step_end(self, args, state, control, **kwargs):
        last = state.log_history[-1] if state.log_history else {}
        self.run.progress(state.global_step, state.max_steps, **{k: v for k, v in last.items() if k == "loss"})
        if state.global_step % 5 == 0 and say_to_all(self.run.should_checkpoint()):  # it costs a broadcast
            self.saving = self.run.checkpointing(state.global_step)
            self.saving.__enter__()
            control.should_save = True
        return control

    def on_save(self, args, state, control, **kwargs):
        if self.saving is not None:
            self.saving.__exit__(None, None, None)
            self.saving = None
        if say_to_all(self.run.should_stop()):
            self.leave = control.should_training_stop = True
        return control


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        ids = torch.randint(0, 256, (64,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": ids, "labels": ids}


def main():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=2))
    hook = Stoker()
    args = TrainingArguments(output_dir=OUT, num_train_epochs=3, per_device_train_batch_size=16,
                             save_strategy="no", save_total_limit=2, logging_steps=20, report_to=[],
                             use_cpu=not torch.cuda.is_available())     # or a gang on CPUs would not meet
    trainer = Trainer(model=model, args=args, train_dataset=Tokens(), callbacks=[hook])
    last = get_last_checkpoint(OUT) if os.path.isdir(OUT) else None
    trainer.train(resume_from_checkpoint=last)
    if hook.leave:
        hook.run.requeue()
    trainer.save_model(os.path.join(OUT, "final"))


if __name__ == "__main__":
    main()
