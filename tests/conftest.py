# SPDX-License-Identifier: Apache-2.0
"""Lets every test folder import the helpers in tests/lib."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
