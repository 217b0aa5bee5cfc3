import os
import signal
import time
import unittest


class TestCart(unittest.TestCase):
    def test_a_passes(self):
        pass

    def test_b_fails(self):
        self.assertEqual(1 + 1, 3)

    @unittest.skip("not today")
    def test_c_is_skipped(self):
        pass

    def test_d_misbehaves(self):
        if os.environ.get("MISBEHAVE") == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if os.environ.get("MISBEHAVE") == "hang":
            time.sleep(3600)
