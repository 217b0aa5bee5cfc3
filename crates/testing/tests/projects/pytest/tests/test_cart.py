import os
import signal
import time

import pytest


def test_passes():
    pass


def test_fails():
    assert 1 + 1 == 3


@pytest.mark.skip(reason="not today")
def test_is_skipped():
    pass


def test_misbehaves():
    if os.environ.get("MISBEHAVE") == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if os.environ.get("MISBEHAVE") == "hang":
        time.sleep(3600)
