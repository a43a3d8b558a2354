#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What stands in for nvidia-cuda-mps-control where there is no GPU: it keeps a line of each call in
# ../fake/mps, and with -d leaves a process behind that does nothing.
fake=$(dirname "$0")/../fake
case "$1" in
-d)
    echo "start gpu=$CUDA_VISIBLE_DEVICES uid=$(id -u) pipe=$CUDA_MPS_PIPE_DIRECTORY" >>"$fake/mps"
    if [ -e "$fake/mps-fails" ]; then
        echo "An instance of this daemon is already running"
        exit 1
    fi
    [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || exit 2
    setsid /bin/sh "$0" serve </dev/null >/dev/null 2>&1 &
    echo $! >"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
    ;;
serve)
    while :; do sleep 1; done
    ;;
*)
    read -r word
    echo "$word pipe=$CUDA_MPS_PIPE_DIRECTORY" >>"$fake/mps"
    [ -e "$fake/mps-keeps" ] && exit 0
    kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid")"
    ;;
esac
