// Tells what happens in a Jest run, as JSON lines, to the file named by REHEARSAL_EVENTS. For Jest 24 and later.
// Nothing here may change a result: every hook is quiet about its own errors.
'use strict';

const fs = require('fs');

const ROOM = 8192; // characters kept at each end of a text

function openEvents() {
  const path = process.env.REHEARSAL_EVENTS;
  // Taken away, so that no Jest that a test starts writes into this run's events.
  delete process.env.REHEARSAL_EVENTS;
  if (!path) return null;
  const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = fs.constants;
  // A FIFO that nobody reads would block: the first open finds out, the second may wait for its reader.
  const probe = fs.openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600);
  const fd = fs.openSync(path, O_WRONLY | O_APPEND);
  fs.closeSync(probe);
  return fd;
}

function short(text) {
  const whole = String(text);
  if (whole.length <= 2 * ROOM) return whole;
  const left = whole.length - 2 * ROOM;
  return `${whole.slice(0, ROOM)}\n[… ${left} characters left out …]\n${whole.slice(-ROOM)}`;
}

const STATUS = { passed: 'pass', failed: 'fail', pending: 'skip', todo: 'skip', disabled: 'skip', skipped: 'skip' };

class RehearsalReporter {
  constructor(globalConfig) {
    this.fd = null;
    // How often each test of a file was told already: the file's result has them all, some for the first time.
    this.told = new Map();
    this.quietly(() => {
      this.fd = openEvents();
      this.tell({ ev: 'run', runner: 'jest', root: globalConfig && globalConfig.rootDir });
    });
  }

  quietly(action) {
    try {
      action();
    } catch (_) {
      this.fd = null; // a reporter that fails is silent
    }
  }

  tell(event) {
    if (this.fd === null) return;
    let bytes = Buffer.from(`${JSON.stringify(event)}\n`);
    while (bytes.length > 0) bytes = bytes.subarray(fs.writeSync(this.fd, bytes));
  }

  // Jest 24 to 26 know this hook as onTestStart.
  onTestStart(test) {
    this.onTestFileStart(test);
  }

  onTestFileStart(test) {
    this.quietly(() => {
      if (this.told.has(test.path)) return;
      this.told.set(test.path, new Map());
      this.tell({ ev: 'suite_start', suite: test.path });
    });
  }

  onTestCaseStart(test, testCase) {
    this.quietly(() => {
      const line = testCase.location ? testCase.location.line : undefined;
      this.tell({ ev: 'start', suite: test.path, test: testCase.fullName, file: test.path, line });
    });
  }

  onTestCaseResult(test, result) {
    this.quietly(() => {
      const told = this.told.get(test.path);
      if (told) told.set(result.fullName, (told.get(result.fullName) || 0) + 1);
      this.end(test.path, result);
    });
  }

  onTestResult(test, result) {
    this.quietly(() => {
      const told = this.told.get(test.path) || new Map();
      for (const one of result.testResults) {
        const times = told.get(one.fullName) || 0;
        if (times === 0) this.end(test.path, one);
        told.set(one.fullName, Math.max(times - 1, 0));
      }
      this.told.delete(test.path);
      const error = result.testExecError;
      if (error || (result.failureMessage && result.testResults.length === 0)) {
        const stack = short((error && (error.stack || error.message)) || '');
        const message = short(result.failureMessage || stack);
        this.tell({ ev: 'problem', scope: 'suite', name: test.path, file: test.path, message, stack });
      }
      this.tell({ ev: 'suite_end', suite: test.path });
    });
  }

  end(suite, result) {
    const failed = result.status === 'failed';
    const stack = short((result.failureMessages || []).join('\n\n'));
    const details = (result.failureDetails || [])[0];
    const matcher = details && details.matcherResult;
    const printed = (value) => (value === undefined || value === null ? undefined : short(asText(value)));
    this.tell({
      ev: 'end',
      suite,
      test: result.fullName,
      status: STATUS[result.status] || 'skip',
      ms: result.duration || 0,
      // With jest.retryTimes only the last attempt is told.
      attempts: result.invocations > 1 ? result.invocations : undefined,
      stack: failed ? stack : undefined,
      expected: failed && matcher ? printed(matcher.expected) : undefined,
      actual: failed && matcher ? printed(matcher.actual) : undefined,
      file: failed ? suite : undefined,
      line: failed && result.location ? result.location.line : undefined,
    });
  }

  onRunComplete(_contexts, results) {
    this.quietly(() => {
      if (results.runExecError) {
        const { message, stack } = results.runExecError;
        this.tell({ ev: 'problem', scope: 'run', message: short(message || stack), stack: short(stack || '') });
      }
      const interrupted = results.wasInterrupted === true;
      if (!interrupted) this.tell({ ev: 'finish', count: results.numTotalTests });
    });
  }

  getLastError() {}
}

function asText(value) {
  if (typeof value === 'string') return value;
  const text = JSON.stringify(value);
  return text === undefined ? String(value) : text;
}

module.exports = RehearsalReporter;
