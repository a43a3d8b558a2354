# SPDX-License-Identifier: Apache-2.0
"""Requests that schemathesis makes up from the document: what fits it is not refused as malformed, what does not fit it is
refused, and every status and body of an answer is in the document.

No job of these requests is ever executed: the daemon has /bin/false in place of the program that starts jobs."""
import os
import shutil
import subprocess

import pytest
from daemon import STOKERD, Daemon
from patience import PATIENCE_S

SCHEMATHESIS = STOKERD.parent / "venv/bin/schemathesis"
pytestmark = [pytest.mark.skipif(not STOKERD.exists(), reason="there is no stokerd"),
              pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="no build/venv; run scripts/bootstrap test")]

CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
          "positive_data_acceptance", "negative_data_rejection", "unsupported_method", "allow_header_conformance"]
# What fits the document may be refused for what there is at the time, and never with 400; what does not fit, also for its size.
CONFIG = '''
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "413", "422", "429"]
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "422", "429"]
'''
LEFT_OUT = [
    "/v1/adopt",  # would take over, and later end, processes of this machine
    "/v1/tokens/{id}",  # would revoke the token of this test
    "/v1/events", "/v1/jobs/{id}/wait", "/v1/jobs/{id}/log",  # their answers may go on for ever
    "/v1/rules/test"]  # GET and DELETE of it are of a rule with that name


class Inert(Daemon):
    """Programs beside the daemon are found there: jobs end at once, not started."""

    def command(self):
        programs = self.folder / "programs"
        if not programs.exists():
            programs.mkdir()
            for name in ("stokerd", "stoker-whatif"):
                shutil.copy(STOKERD.parent / name, programs / name)
            os.symlink(shutil.which("false"), programs / "stoker-shim")
        return [str(programs / "stokerd"), *super().command()[1:]]


@pytest.fixture
def daemon(tmp_path):
    with Inert(tmp_path / "daemon", gpus=2) as d:
        yield d


def run_schemathesis(daemon, folder, *options):
    (folder / "schemathesis.toml").write_text(CONFIG)
    token = daemon.post("/v1/tokens", {"name": "schemathesis"})["token"]
    left_out = [word for path in LEFT_OUT for word in ("--exclude-path", path)]
    done = subprocess.run(
        [SCHEMATHESIS, "--config-file", "schemathesis.toml", "run", daemon.url + "/openapi.json", "--url", daemon.url, "--header", f"Authorization: Bearer {token}",
         "--seed", "7", "--checks", ",".join(CHECKS), "--continue-on-failure", "--request-timeout", str(PATIENCE_S), "--suppress-health-check", "all",
         "--generation-database", "none", "--warnings", "off", *left_out, *options],
        cwd=folder, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert daemon.alive()
    return done.stdout


def test_no_request_that_fits_the_document_is_refused_as_malformed(daemon, tmp_path):
    run_schemathesis(daemon, tmp_path, "--mode", "positive", "--phases", "fuzzing", "--max-examples", "20")


def test_requests_at_the_bounds_of_the_document_are_answered_as_it_says(daemon, tmp_path):
    run_schemathesis(daemon, tmp_path, "--mode", "all", "--phases", "coverage,fuzzing", "--max-examples", "5")
