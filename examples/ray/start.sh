#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# start.sh PROGRAM ARGS... - a Ray cluster that lives as long as the job.
# Run by every task of a gang: task 0 is the head and runs PROGRAM, the others are workers. When
# PROGRAM ends, the head stops, and with it the workers.
set -eu

rank=${RANK:-0}
head=${MASTER_ADDR:-127.0.0.1}
# not MASTER_PORT itself: a program under Ray may use that for torch.distributed
port=$((${MASTER_PORT:-15000} + 1))

# as many GPUs as this task was given
gpus=0
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    gpus=$(printf '%s\n' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
fi
cpus=${SLURM_CPUS_PER_TASK:-1}

if [ "$rank" -ne 0 ]; then
    # waits for the head by itself; ends when the head has gone, which is no failure
    tries=0
    until ray start --address="$head:$port" --num-gpus="$gpus" --num-cpus="$cpus" --disable-usage-stats; do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ] || exit 1
        sleep 1
    done
    while ray status --address="$head:$port" >/dev/null 2>&1; do sleep 2; done
    exit 0
fi

ray start --head --node-ip-address="$head" --port="$port" --num-gpus="$gpus" --num-cpus="$cpus" \
    --include-dashboard=false --disable-usage-stats
trap 'ray stop >/dev/null 2>&1 || true' EXIT
RAY_ADDRESS="$head:$port" "$@"
