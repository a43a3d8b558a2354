#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work spread by Ray over the tasks of a gang. Finished pieces are kept, so a restart does the rest.

    stoker submit job.yaml
"""
import json
import os

import ray
import stoker

RESULTS = "ray-results.jsonl"
PIECES = 100


@ray.remote
def piece(n):
    return n, sum(i * i for i in range(100000 + n))


def main():
    done = {}
    if os.path.exists(RESULTS):
        with open(RESULTS, encoding="utf-8") as file:
            done = {entry["piece"]: entry["value"] for entry in map(json.loads, file)}
    ray.init(address=os.environ["RAY_ADDRESS"])
    run = stoker.current()
    waiting = [piece.remote(n) for n in range(PIECES) if n not in done]
    print(len(done), "pieces are there,", len(waiting), "to do on", ray.cluster_resources(), flush=True)
    with open(RESULTS, "a", encoding="utf-8") as file:
        while waiting:
            ready, waiting = ray.wait(waiting)
            n, value = ray.get(ready[0])
            file.write(json.dumps({"piece": n, "value": value}) + "\n")
            file.flush()        # each finished piece is safe: no other checkpoint is needed
            run.progress(PIECES - len(waiting), PIECES)
            if run.should_stop():
                run.requeue()
    print("all", PIECES, "pieces are in", RESULTS)


if __name__ == "__main__":
    main()
