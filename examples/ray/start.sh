#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# start.sh PROGRAM ARGS... - a Ray cluster that lives as long as the job.
# Run by every task of a gang: task 0 is the head and runs PROGRAM, the others are workers. When
# PROGRAM ends, the head stops, and with it the workers.
# Ray listens on the network and asks for no password, unless you set RAY_AUTH_MODE=token (see its manual).
set -eu

rank=${RANK:-0}
head=${MASTER_ADDR:-127.0.0.1}
# Not MASTER_PORT itself: a program under Ray may use that for torch.distributed. Nor one near it, which
# another job may have. Workers take any free port: by default Ray has 10002 to 19999 for them.
port=$((${MASTER_PORT:-15000} + 10000))
workers='--min-worker-port=0 --max-worker-port=0'

# as many GPUs as this task was given
gpus=0
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    gpus=$(printf '%s\n' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
fi
cpus=${SLURM_CPUS_PER_TASK:-1}

# It answers before it has a node to run anything on.
head_is_up() {
    ray status --address="$head:$port" 2>/dev/null | grep -q node_
}

if [ "$rank" -ne 0 ]; then
    # Waits for the head, then stays until the head has gone, which is no failure.
    until head_is_up; do sleep 1; done
    # shellcheck disable=SC2086 # two words
    ray start --address="$head:$port" --num-gpus="$gpus" --num-cpus="$cpus" $workers --disable-usage-stats \
        --block || true
    exit 0
fi

# --block keeps Ray's processes under this one, so that ending it ends them. Not `ray stop`: that would
# end every Ray of yours on this machine, other jobs' too.
# shellcheck disable=SC2086 # two words
ray start --head --node-ip-address="$head" --port="$port" --num-gpus="$gpus" --num-cpus="$cpus" $workers \
    --include-dashboard=false --disable-usage-stats --block &
ray=$!
trap 'kill "$ray" 2>/dev/null; wait "$ray" 2>/dev/null || true' EXIT
until head_is_up; do
    kill -0 "$ray" 2>/dev/null || exit 1
    sleep 1
done
RAY_ADDRESS="$head:$port" "$@"
