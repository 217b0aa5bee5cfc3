"""Tells what happens in a pytest run, as JSON lines, to the file named by REHEARSAL_EVENTS.

For pytest 5 and later. With xdist only the controller writes: the workers' reports arrive there.
Nothing here may change a result: every hook is quiet about its own errors.
"""

import json
import os

import pytest

ROOM = 8192  # characters kept at each end of a text
FRAMES = 50  # innermost frames told of a traceback


class _Events:
    def __init__(self):
        # Taken away, so that no pytest that a test starts writes into this run's events.
        path = os.environ.pop("REHEARSAL_EVENTS", None)
        self.fd = None
        self.pid = os.getpid()
        self.tests = {}
        self.retried = set()
        self.declared = False
        if path:
            # A FIFO that nobody reads would block: the first open finds out, the second may wait for its reader.
            probe = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
            self.fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.close(probe)

    def tell(self, ev, **fields):
        if self.fd is None or os.getpid() != self.pid:
            return
        event = {"ev": ev}
        event.update((key, value) for key, value in fields.items() if value not in (None, "", []))
        line = (json.dumps(event) + "\n").encode("ascii")
        while line:
            line = line[os.write(self.fd, line) :]


_events = None


def _quietly(action, *args):
    global _events
    if _events is not None:
        try:
            action(_events, *args)
        except Exception:  # a reporter that fails is silent
            _events = None


def _short(text):
    text = str(text)
    if len(text) <= 2 * ROOM:
        return text
    return "%s\n[… %d characters left out …]\n%s" % (text[:ROOM], len(text) - 2 * ROOM, text[-ROOM:])


def _suite(nodeid):
    return nodeid.split("::", 1)[0]


def _frames(longrepr):
    """The places of a traceback, the innermost first."""
    chain = getattr(longrepr, "chain", None)
    traceback = chain[-1][0] if chain else getattr(longrepr, "reprtraceback", None)
    frames = []
    for entry in getattr(traceback, "reprentries", None) or ():
        place = getattr(entry, "reprfileloc", None)
        if place is not None:
            frames.append([str(place.path), place.lineno])
    return frames[::-1][:FRAMES]


def _failure(report):
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):  # a skip: file, line, reason
        path, line, reason = longrepr
        prefix = "Skipped: "
        reason = reason[len(prefix) :] if reason.startswith(prefix) else reason
        return {"message": _short(reason), "file": str(path), "line": line if isinstance(line, int) else None}
    failure = {"stack": _short(longrepr) if longrepr is not None else None, "frames": _frames(longrepr)}
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        failure.update(message=_short(crash.message), file=str(crash.path), line=crash.lineno)
    return failure


def _output(report):
    sections = [content for title, content in report.sections if title.startswith("Captured ")]
    return _short("".join(sections))


# How a phase's outcome and kind make the test's: the first that applies stays.
def _phase(report):
    expected = getattr(report, "wasxfail", None)
    if report.when == "???":
        return "crash", "crash"
    if report.outcome == "failed" or report.outcome == "rerun":
        if report.when != "call":
            return "error", report.when
        strict = isinstance(report.longrepr, str) and report.longrepr.startswith("[XPASS(strict)]")
        return "fail", "unexpected_pass" if strict else None
    if report.outcome == "skipped":
        return ("skip" if expected is None else "xfail"), None
    return "pass", None


def _on_report(events, report):
    test = events.tests.setdefault(report.nodeid, {"status": "pass", "ms": 0.0})
    subtest = hasattr(report, "context")
    if not subtest:
        test["ms"] += (getattr(report, "duration", 0) or 0) * 1000
    status, kind = _phase(report)
    # A subtest can make its test fail, and nothing else.
    worse = status == "fail" if subtest else status != "pass"
    if worse and test["status"] in ("pass", "skip", "xfail"):
        test.update(_failure(report), status=status, kind=kind)
        if status == "xfail":
            test["message"] = str(report.wasxfail)
        if status not in ("skip", "xfail"):
            test["output"] = _output(report)
    if report.outcome == "rerun":
        events.retried.add(report.nodeid)
    if not subtest and report.when in ("teardown", "???"):
        _end(events, report.nodeid)


def _end(events, nodeid):
    test = events.tests.pop(nodeid, None)
    if test is not None:
        retry = True if nodeid in events.retried else None
        events.tell("end", suite=_suite(nodeid), test=nodeid, retry=retry, **test)


def _on_start(events, nodeid, location):
    file, line, _ = location
    events.tests.pop(nodeid, None)
    line = line + 1 if isinstance(line, int) else None
    events.tell("start", suite=_suite(nodeid), test=nodeid, file=file, line=line)


def _on_collected(events, report):
    if report.failed:
        stack = _short(report.longrepr)
        events.tell("problem", scope="suite", name=report.nodeid, stack=stack, frames=_frames(report.longrepr))


def _on_declared(events, count):
    if not events.declared:
        events.declared = True
        events.tell("declared", count=count)


def _on_run_error(events, message):
    events.tell("problem", scope="run", stack=_short(message))


def _on_finish(events, exitstatus):
    for nodeid in list(events.tests):
        if events.tests[nodeid]["status"] != "pass":  # it failed, and the run was ended before its teardown
            _end(events, nodeid)
    events.tell("finish", exit=int(exitstatus))


def pytest_configure(config):
    global _events
    if hasattr(config, "workerinput") or _events is not None:
        return
    try:
        _events = _Events()
        _events.tell("run", runner="pytest", version=pytest.__version__)
    except Exception:
        _events = None


def pytest_collectreport(report):
    _quietly(_on_collected, report)


def pytest_collection_finish(session):
    _quietly(_on_declared, len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids):
    _quietly(_on_declared, len(ids))


def pytest_runtest_logstart(nodeid, location):
    _quietly(_on_start, nodeid, location)


def pytest_runtest_logreport(report):
    _quietly(_on_report, report)


def pytest_internalerror(excrepr):
    _quietly(_on_run_error, excrepr)


def pytest_keyboard_interrupt(excinfo):
    # pytest also stops itself this way, for reasons that were told already.
    if excinfo.typename in ("Exit", "KeyboardInterrupt"):
        _quietly(_on_run_error, excinfo.exconly())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus):
    _quietly(_on_finish, exitstatus)
