-- Times are integers: milliseconds since 1970-01-01 UTC. Documents are JSON; the columns beside them are what
-- is searched and sorted by, derived from the document by the one writer.

CREATE TABLE flows (
    version TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    source  TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    num        INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    doc        TEXT NOT NULL
) STRICT;

CREATE TABLE progress (
    num     INTEGER PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (name),
    doc     TEXT NOT NULL
) STRICT;
CREATE INDEX progress_of_session ON progress (session, num);

-- `num` is the order of arrival: it decides between tasks that were added in the same millisecond.
CREATE TABLE tasks (
    num          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    session      TEXT REFERENCES sessions (name),
    flow_version TEXT NOT NULL REFERENCES flows (version),
    priority     INTEGER NOT NULL,
    state        TEXT NOT NULL,
    status       TEXT NOT NULL,
    standing     TEXT NOT NULL CHECK (standing IN ('ready', 'claimed', 'waiting', 'ended')),
    open         INTEGER NOT NULL CHECK (open IN (0, 1)),   -- whether it has not ended
    done         INTEGER NOT NULL CHECK (done IN (0, 1)),
    claimable_at INTEGER,                      -- from when a worker may take it; null: not by itself
    open_deps    INTEGER NOT NULL DEFAULT 0,   -- how many of its dependencies are not done
    lane         TEXT NOT NULL,                -- `AGENT/SESSION`, each of which can be empty: what is held back together
    touches      TEXT,                         -- the patterns of files that it declares to change; null: none
    lease_until  INTEGER,                      -- of a claim under a lease: when it may be taken over. In no event.
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    doc          TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_order ON tasks (priority, created_at, num);
CREATE INDEX tasks_of_session ON tasks (session, priority, created_at, num) WHERE session IS NOT NULL;
CREATE INDEX tasks_open ON tasks (priority, created_at, num) WHERE open = 1;
CREATE INDEX tasks_open_of_session ON tasks (session, priority, created_at, num)
    WHERE open = 1 AND session IS NOT NULL;
-- Also for the next of a session, and of all: there are few lanes.
CREATE INDEX tasks_claimable_of_lane ON tasks (lane, priority, created_at, num, claimable_at)
    WHERE claimable_at IS NOT NULL AND open_deps = 0;
CREATE INDEX tasks_claimable_at ON tasks (claimable_at) WHERE claimable_at > 0 AND open_deps = 0;
CREATE INDEX tasks_in_work ON tasks (lease_until) WHERE standing = 'claimed';
CREATE INDEX tasks_in_state ON tasks (flow_version, state) WHERE open = 1;

-- How many tasks there are of each kind, kept by the triggers below: a count must not read every task.
CREATE TABLE task_counts (
    session TEXT NOT NULL,                     -- empty: of no session
    status  TEXT NOT NULL,
    open    INTEGER NOT NULL CHECK (open IN (0, 1)),
    done    INTEGER NOT NULL CHECK (done IN (0, 1)),
    total   INTEGER NOT NULL,
    PRIMARY KEY (session, status, open, done)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tasks_are_counted AFTER INSERT ON tasks
BEGIN
    INSERT INTO task_counts (session, status, open, done, total)
    VALUES (coalesce(NEW.session, ''), NEW.status, NEW.open, NEW.done, 1)
    ON CONFLICT DO UPDATE SET total = total + 1;
END;
CREATE TRIGGER tasks_are_not_counted AFTER DELETE ON tasks
BEGIN
    UPDATE task_counts SET total = total - 1
    WHERE session = coalesce(OLD.session, '') AND status = OLD.status
      AND open = OLD.open AND done = OLD.done;
END;
CREATE TRIGGER tasks_are_counted_anew AFTER UPDATE OF session, status, open, done ON tasks
BEGIN
    UPDATE task_counts SET total = total - 1
    WHERE session = coalesce(OLD.session, '') AND status = OLD.status
      AND open = OLD.open AND done = OLD.done;
    INSERT INTO task_counts (session, status, open, done, total)
    VALUES (coalesce(NEW.session, ''), NEW.status, NEW.open, NEW.done, 1)
    ON CONFLICT DO UPDATE SET total = total + 1;
END;

CREATE TABLE task_deps (
    task       TEXT NOT NULL REFERENCES tasks (id),
    depends_on TEXT NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_deps_back ON task_deps (depends_on);
-- One dependency less is open for those that wait for it, or one more if it begins anew.
CREATE TRIGGER dependents_are_told AFTER UPDATE OF done ON tasks WHEN OLD.done <> NEW.done
BEGIN
    UPDATE tasks SET open_deps = open_deps + OLD.done - NEW.done
    WHERE id IN (SELECT task FROM task_deps WHERE depends_on = NEW.id);
END;

-- Whose turn it was last, of the sessions: who waited longest comes first.
CREATE TABLE turns (
    session TEXT PRIMARY KEY,                  -- empty: tasks of no session
    turn    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The lanes that stand still.
CREATE TABLE holds (
    lane  TEXT PRIMARY KEY,
    until INTEGER,                             -- null: until someone frees it
    doc   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    num           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    task          TEXT NOT NULL REFERENCES tasks (id),
    session       TEXT,
    fence         INTEGER NOT NULL,
    agent         TEXT NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    cost_usd      REAL,
    tokens_input  INTEGER,
    tokens_cached INTEGER,
    tokens_output INTEGER,
    turns         INTEGER,
    start_doc     TEXT NOT NULL,
    end_doc       TEXT
) STRICT;
CREATE INDEX runs_of_task ON runs (task, num);
CREATE INDEX runs_of_session ON runs (session, num) WHERE session IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent, started_at);
CREATE INDEX runs_unfinished ON runs (num) WHERE end_doc IS NULL;
-- A fence is given out once.
CREATE UNIQUE INDEX runs_fence ON runs (task, fence);

-- Runs of the repository's tests. `results` is large and only read as a whole.
CREATE TABLE test_runs (
    num       INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT NOT NULL UNIQUE,
    at        INTEGER NOT NULL,
    root      TEXT NOT NULL,
    framework TEXT NOT NULL,
    tree      TEXT,
    doc       TEXT NOT NULL,
    results   TEXT NOT NULL
) STRICT;
CREATE INDEX test_runs_of_project ON test_runs (root, framework, num);

-- Nothing is ever removed, so that SQLite gives out ever higher numbers by itself.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    kind    TEXT NOT NULL,
    task_id TEXT,
    session TEXT,
    run_id  TEXT,
    body    TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_task ON events (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX events_of_session ON events (session, seq) WHERE session IS NOT NULL;
CREATE INDEX events_of_run ON events (run_id, seq) WHERE run_id IS NOT NULL;
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'the log is append-only');
END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'the log is append-only');
END;
