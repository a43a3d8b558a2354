#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: a training loop with tf.train.Checkpoint.

    stoker submit job.yaml

TensorFlow takes all GPU memory unless told not to; memory growth keeps the rest for others and
makes suspending faster.
"""
import stoker
import tensorflow as tf

STEPS = 2000


def main():
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.random.set_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Input((32,)), tf.keras.layers.Dense(64, "relu"),
                                 tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    step = tf.Variable(0, dtype=tf.int64)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(state, "tf-checkpoints", max_to_keep=2)
    if manager.latest_checkpoint:
        state.restore(manager.latest_checkpoint)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    run = stoker.current()
    print("starting at step", int(step), flush=True)
    while int(step) < STEPS:
        x = tf.random.stateless_normal((128, 32), seed=(1, int(step)))
        loss = train(x, tf.reduce_sum(x, 1, keepdims=True))
        step.assign_add(1)
        run.progress(int(step), STEPS, loss=float(loss))
        if run.should_checkpoint():
            with run.checkpointing(int(step)):
                manager.save(int(step))
            if run.should_stop():
                run.requeue()
    manager.save(int(step))
    print("done at step", int(step))


if __name__ == "__main__":
    main()
