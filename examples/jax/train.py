#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX: parameters are a tree of arrays; the checkpoint is one .npz file.

    stoker submit job.yaml

JAX takes three quarters of the GPU's memory at start. job.yaml turns that off, which leaves the rest
to others and makes suspending faster.
"""
import os

import jax
import jax.numpy as jnp
import numpy as np
import stoker

STEPS = 2000
CHECKPOINT = "jax.npz"


def save(step, params):
    leaves = jax.tree_util.tree_leaves(params)
    with open(CHECKPOINT + ".new", "wb") as file:
        np.savez(file, step=step, **{"leaf%d" % i: np.asarray(leaf) for i, leaf in enumerate(leaves)})
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def load(params):
    if not os.path.exists(CHECKPOINT):
        return 0, params
    with np.load(CHECKPOINT) as data:
        leaves, tree = jax.tree_util.tree_flatten(params)
        found = [jnp.asarray(data["leaf%d" % i]) for i in range(len(leaves))]
        return int(data["step"]), jax.tree_util.tree_unflatten(tree, found)


def loss_of(params, x, y):
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


@jax.jit
def update(params, key):
    x = jax.random.normal(key, (128, 32))
    loss, grads = jax.value_and_grad(loss_of)(params, x, jnp.sum(x, 1, keepdims=True))
    return jax.tree_util.tree_map(lambda p, g: p - 1e-2 * g, params, grads), loss


def main():
    first, second = jax.random.split(jax.random.PRNGKey(1))
    step, params = load({"w1": 0.1 * jax.random.normal(first, (32, 64)), "b1": jnp.zeros(64),
                         "w2": 0.1 * jax.random.normal(second, (64, 1))})
    run = stoker.current()
    print("starting at step", step, "on", jax.devices()[0], flush=True)
    while step < STEPS:
        params, loss = update(params, jax.random.PRNGKey(step))
        step += 1
        if step % 10:
            continue        # float(loss) waits for the GPU: not every step
        run.progress(step, STEPS, loss=float(loss))
        if run.should_checkpoint():
            with run.checkpointing(step):
                save(step, params)
            if run.should_stop():
                run.requeue()
    save(step, params)
    print("done at step", step)


if __name__ == "__main__":
    main()
