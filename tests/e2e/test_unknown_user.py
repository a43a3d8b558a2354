# SPDX-License-Identifier: Apache-2.0
"""A daemon that runs jobs as their users takes none from somebody whom it cannot look up: neither its groups nor its home are known."""
import json
import os
import pwd
import subprocess

import pytest
from daemon import Daemon
from patience import PATIENCE_S
from test_api import SOMEBODY

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")


def nobody_is():
    """A number that no user has."""
    known = {p.pw_uid for p in pwd.getpwall()}
    return next(n for n in range(54321, 60000) if n not in known)


def test_a_user_who_cannot_be_looked_up_is_told_so(tmp_path):
    uid = nobody_is()
    with Daemon(tmp_path) as d:
        done = subprocess.run(["/usr/bin/python3", "-c", SOMEBODY, str(d.socket), "POST", "/v1/jobs", json.dumps({"command": ["/bin/true"], "workdir": "/"})],
                              user=uid, group=uid, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=PATIENCE_S)
        status, text = json.loads(done.stdout)
        error = json.loads(text)["error"]
        assert status == 503 and error["code"] == "unknown_user" and f"user {uid}" in error["message"]
        assert d.wait(d.submit(command=["/bin/true"]))["cause"] == "completed"
