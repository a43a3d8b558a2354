# SPDX-License-Identifier: Apache-2.0
"""Where Slurm runs the jobs, input of "stoker run" cannot be sent. The Slurm of these tests is played by the tests."""
import subprocess

import pytest
from daemon import STOKER, STOKERD
from fake_slurm import FakeSlurm

pytestmark = pytest.mark.skipif(not STOKERD.exists(), reason="not built")


def test_input_that_would_be_lost_is_told_of_at_once(tmp_path):
    with FakeSlurm(tmp_path, nodes=1, gpus=1) as s:
        p = subprocess.Popen([STOKER, "run", "--gpus", "1", "--", "cat"], env={**s.daemon.env, "STOKER_SOCKET": str(s.daemon.socket)}, cwd="/tmp",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdin.write("lost\n")
        p.stdin.flush()
        said = [p.stderr.readline(), p.stderr.readline()]
        assert any("standard input is not sent to the job: Slurm runs the jobs" in line for line in said), said
        assert s.expect("submit")  # it goes on
        p.kill()
        p.communicate()
