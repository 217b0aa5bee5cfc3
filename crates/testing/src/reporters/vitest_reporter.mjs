// Tells what happens in a Vitest run, as JSON lines, to the file named by REHEARSAL_EVENTS.
// Vitest 3 and later report tests one by one; for 0.34 to 2 the same is read from packs of task updates.
// Nothing here may change a result: every hook is quiet about its own errors.
import fs from 'node:fs';

const ROOM = 8192; // characters kept at each end of a text

function openEvents() {
  const path = process.env.REHEARSAL_EVENTS;
  // Taken away, so that no Vitest that a test starts writes into this run's events.
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
  if (text === undefined || text === null) return undefined;
  const whole = typeof text === 'string' ? text : String(JSON.stringify(text));
  if (whole.length <= 2 * ROOM) return whole;
  const left = whole.length - 2 * ROOM;
  return `${whole.slice(0, ROOM)}\n[… ${left} characters left out …]\n${whole.slice(-ROOM)}`;
}

// Vitest's own name of a test: its groups and itself.
function fullName(task) {
  const parents = [];
  for (let at = task.suite; at && at.name && at.type === 'suite' && at !== at.file; at = at.suite) parents.unshift(at.name);
  return [...parents, task.name].join(' ');
}

function failure(error) {
  if (!error) return {};
  const stacks = error.stacks || [];
  return {
    message: short(error.message ?? String(error)),
    stack: short(error.stack || error.stackStr || error.message),
    frames: stacks.length > 0 ? stacks.map(({ file, line }) => [file, line]) : undefined,
    expected: short(error.expected),
    actual: short(error.actual),
  };
}

export default class RehearsalReporter {
  fd = null;
  count = 0;
  // What was told of each task of a run before Vitest 3: 'start' or 'end'.
  told = new Map();
  running = new Set();
  modern = false;

  onInit(vitest) {
    this.quietly(() => {
      this.fd = openEvents();
      this.vitest = vitest;
      this.tell({ ev: 'run', runner: 'vitest', version: vitest.version, root: vitest.config?.root });
    });
  }

  quietly(action) {
    try {
      action();
    } catch {
      this.fd = null; // a reporter that fails is silent
    }
  }

  tell(event) {
    if (this.fd === null) return;
    let bytes = Buffer.from(`${JSON.stringify(event)}\n`);
    while (bytes.length > 0) bytes = bytes.subarray(fs.writeSync(this.fd, bytes));
  }

  problem(scope, name, file, error, kind) {
    this.tell({ ev: 'problem', scope, name, file, kind, ...failure(error) });
  }

  // --- Vitest 3 and later

  onTestRunStart() {
    this.modern = true;
  }

  onTestModuleQueued(module) {
    this.quietly(() => {
      this.running.add(module.moduleId);
      this.tell({ ev: 'suite_start', suite: module.moduleId });
    });
  }

  onTestModuleCollected(module) {
    this.quietly(() => {
      const count = [...module.children.allTests()].length;
      this.tell({ ev: 'declared', count });
    });
  }

  onTestCaseReady(test) {
    this.quietly(() => {
      if (test.options.mode === 'skip' || test.options.mode === 'todo') return;
      const suite = test.module.moduleId;
      this.tell({ ev: 'start', suite, test: nameOf(test), file: suite, line: test.location?.line });
    });
  }

  onTestCaseResult(test) {
    this.quietly(() => {
      const result = test.result();
      const diagnostic = test.diagnostic();
      let status = { passed: 'pass', failed: 'fail' }[result.state] || 'skip';
      if (status === 'pass' && diagnostic?.flaky) status = 'flaky';
      this.end(test.module.moduleId, nameOf(test), status, diagnostic?.duration, result.errors?.[0], test.location?.line);
    });
  }

  onTestSuiteResult(group) {
    this.quietly(() => {
      for (const error of group.errors()) {
        this.problem('suite', nameOf(group), group.module.moduleId, error, 'setup');
      }
    });
  }

  onTestModuleEnd(module) {
    this.quietly(() => this.moduleEnded(module));
  }

  moduleEnded(module) {
    this.running.delete(module.moduleId);
    for (const error of module.errors()) this.problem('suite', module.moduleId, module.moduleId, error);
    this.tell({ ev: 'suite_end', suite: module.moduleId });
  }

  onTestRunEnd(modules, errors, reason) {
    this.quietly(() => {
      // Vitest 3 does not tell the end of a module that could not be loaded. One whose worker died stays open.
      for (const module of modules) {
        if (this.running.has(module.moduleId) && module.errors().length > 0) this.moduleEnded(module);
      }
      this.finish(errors, reason === 'interrupted');
    });
  }

  // --- before Vitest 3

  onPathsCollected() {}

  onCollected(files = []) {
    this.quietly(() => {
      if (this.modern) return;
      for (const file of files) {
        if (this.told.has(file.id)) continue;
        this.told.set(file.id, 'start');
        this.tell({ ev: 'suite_start', suite: file.filepath });
        this.tell({ ev: 'declared', count: tests(file).length });
      }
    });
  }

  onTaskUpdate(packs) {
    this.quietly(() => {
      if (this.modern) return;
      for (const [id] of packs) {
        const task = this.vitest.state.idMap.get(id);
        if (task && task.type !== 'suite') this.updated(task);
      }
    });
  }

  updated(task) {
    const state = task.result?.state;
    const [suite, test, told] = [task.file.filepath, fullName(task), this.told.get(task.id)];
    if (state === 'run' && !told) {
      this.told.set(task.id, 'start');
      this.tell({ ev: 'start', suite, test, file: suite, line: task.location?.line });
    } else if ((state === 'pass' || state === 'fail' || state === 'skip') && told !== 'end') {
      this.ended(task, suite, test);
    }
  }

  ended(task, suite, test) {
    this.told.set(task.id, 'end');
    const { state, duration, errors, retryCount } = task.result || {};
    let status = { pass: 'pass', fail: 'fail' }[state] || 'skip';
    if (status === 'pass' && retryCount > 0) status = 'flaky';
    this.end(suite, test, status, duration, errors?.[0], task.location?.line);
  }

  onFinished(files = [], errors = []) {
    this.quietly(() => {
      if (this.modern) return;
      for (const file of files) {
        for (const task of tests(file)) {
          if (this.told.get(task.id) !== 'end') this.ended(task, file.filepath, fullName(task));
        }
        for (const group of groups(file)) {
          for (const error of group.result?.errors || []) {
            const whole = group === file;
            this.problem('suite', whole ? file.filepath : group.name, file.filepath, error, whole ? undefined : 'setup');
          }
        }
        this.tell({ ev: 'suite_end', suite: file.filepath });
      }
      this.finish(errors, this.vitest.isCancelling);
    });
  }

  // --- both

  end(suite, test, status, ms, error, line) {
    this.count += 1;
    const details = status === 'fail' || status === 'flaky' ? { file: suite, line, ...failure(error) } : {};
    this.tell({ ev: 'end', suite, test, status, ms: ms || 0, ...details });
  }

  finish(errors = [], interrupted = false) {
    for (const error of errors) this.problem('run', error.type || '', undefined, error);
    if (!interrupted) this.tell({ ev: 'finish', count: this.count });
  }
}

// The name of a reported test or group, from Vitest 3 on.
function nameOf(entity) {
  const names = [entity.name];
  for (let at = entity.parent; at && at.type === 'suite'; at = at.parent) names.unshift(at.name);
  return names.join(' ');
}

function tests(task) {
  return task.tasks ? task.tasks.flatMap(tests) : [task];
}

function groups(task) {
  return task.tasks ? [task, ...task.tasks.flatMap(groups)] : [];
}
