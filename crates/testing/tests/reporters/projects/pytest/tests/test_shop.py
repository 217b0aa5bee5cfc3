import os
import time
import unittest

import pytest


@pytest.fixture
def broken_setup():
    raise ConnectionError("no database")


@pytest.fixture
def broken_teardown():
    yield
    raise RuntimeError("teardown failed")


def check(got, want):
    assert got == want, "got %s, want %s" % (got, want)


def test_passes():
    pass


def test_fails():
    print("printed before it failed")
    check(1, 2)


@pytest.mark.skip(reason="not today")
def test_skipped():
    pass


@pytest.mark.xfail(reason="known bug")
def test_expected_failure():
    assert False


@pytest.mark.xfail(strict=True, reason="must fail")
def test_unexpected_pass():
    pass


def test_setup_error(broken_setup):
    pass


def test_teardown_error(broken_teardown):
    pass


@pytest.mark.parametrize("value", ["日本 ✓", "a::b[c]"])
def test_parameters(value):
    assert value == "a::b[c]"


class TestSub(unittest.TestCase):
    def test_method(self):
        self.assertEqual({"a": 1}, {"a": 2})


@pytest.mark.skipif("CRASH" not in os.environ, reason="only on demand")
def test_crashes():
    os.abort()


@pytest.mark.skipif("HANG" not in os.environ, reason="only on demand")
def test_hangs():
    time.sleep(1000)
