#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# start.sh [OPTIONS OF JUPYTER LAB] - Jupyter on a free port of this machine; prints how to reach it.
# Run it as a job:  stoker run --name nb --gpus 1 -- ./start.sh
# It listens on 127.0.0.1 only and keeps Jupyter's token: nobody else gets in.
set -eu

command -v jupyter >/dev/null || {
    echo 'start.sh: there is no jupyter here. Install it (pip install jupyterlab), or name its venv in job.yaml.' >&2
    exit 1
}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
echo "On your own machine:  ssh -N -L $port:127.0.0.1:$port $(id -un)@$(hostname)"
echo "Then open the address that Jupyter prints below (http://127.0.0.1:$port/...)."
exec jupyter lab --no-browser --ip=127.0.0.1 --port="$port" --ServerApp.port_retries=0 "$@"
