-- The same tables as in SQLite. Times are integers: milliseconds since 1970-01-01 UTC. Documents are JSON as text, byte
-- for byte as they were written; the columns beside them are what is searched and sorted by, derived from the document
-- by the one writer, and compared with it by `doctor`: to check each at each write would be a sixth of its cost. Texts that
-- are sorted by compare byte by byte, whatever language the database speaks.
-- Runs inside a schema of its own, which the connection has as its search path.

CREATE TABLE schema_version (
    version BIGINT NOT NULL
);

CREATE TABLE flows (
    version TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    source  TEXT NOT NULL
);

CREATE TABLE sessions (
    num        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    doc        TEXT NOT NULL
);

CREATE TABLE progress (
    num     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL REFERENCES sessions (name),
    doc     TEXT NOT NULL
);
CREATE INDEX progress_of_session ON progress (session, num);

-- `num` is the order of arrival: it decides between tasks that were added in the same millisecond.
CREATE TABLE tasks (
    num          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT COLLATE "C" NOT NULL UNIQUE,
    session      TEXT COLLATE "C" REFERENCES sessions (name),
    flow_version TEXT NOT NULL REFERENCES flows (version),
    priority     BIGINT NOT NULL,
    state        TEXT NOT NULL,
    status       TEXT NOT NULL,
    standing     TEXT NOT NULL,
    open         BIGINT NOT NULL,                      -- whether it has not ended
    done         BIGINT NOT NULL,
    claimable_at BIGINT,                       -- from when a worker may take it; null: not by itself
    open_deps    BIGINT NOT NULL DEFAULT 0,    -- how many of its dependencies are not done
    lane         TEXT COLLATE "C" NOT NULL,    -- `AGENT/SESSION`, each of which can be empty: what is held back together
    touches      TEXT,                         -- the patterns of files that it declares to change; null: none
    lease_until  BIGINT,                       -- of a claim under a lease: when it may be taken over. In no event.
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    doc          TEXT NOT NULL
);
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

CREATE TABLE task_deps (
    task       TEXT COLLATE "C" NOT NULL REFERENCES tasks (id),
    depends_on TEXT COLLATE "C" NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task, depends_on)
);
CREATE INDEX task_deps_back ON task_deps (depends_on);
-- One dependency less is open for those that wait for it, or one more if it begins anew. Being a trigger it looks for
-- them after the row is locked, and so finds those that began to wait until then.
CREATE FUNCTION tell_dependents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks SET open_deps = open_deps + OLD.done - NEW.done
    WHERE id IN (SELECT task FROM task_deps WHERE depends_on = NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER dependents_are_told AFTER UPDATE OF done ON tasks
    FOR EACH ROW WHEN (OLD.done <> NEW.done) EXECUTE FUNCTION tell_dependents();

-- Whose turn it was last, of the sessions: who waited longest comes first.
CREATE TABLE turns (
    session TEXT COLLATE "C" PRIMARY KEY,      -- empty: tasks of no session
    turn    BIGINT NOT NULL
);

-- The lanes that stand still.
CREATE TABLE holds (
    lane  TEXT COLLATE "C" PRIMARY KEY,
    until BIGINT,                              -- null: until someone frees it
    doc   TEXT NOT NULL
);

CREATE TABLE runs (
    num           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT COLLATE "C" NOT NULL UNIQUE,
    task          TEXT COLLATE "C" NOT NULL REFERENCES tasks (id),
    session       TEXT COLLATE "C",
    fence         BIGINT NOT NULL,
    agent         TEXT NOT NULL,
    started_at    BIGINT NOT NULL,
    ended_at      BIGINT,
    cost_usd      DOUBLE PRECISION,
    tokens_input  BIGINT,
    tokens_cached BIGINT,
    tokens_output BIGINT,
    turns         BIGINT,
    start_doc     TEXT NOT NULL,
    end_doc       TEXT
);
CREATE INDEX runs_of_task ON runs (task, num);
CREATE INDEX runs_of_session ON runs (session, num) WHERE session IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent, started_at);
CREATE INDEX runs_unfinished ON runs (num) WHERE end_doc IS NULL;
-- A fence is given out once.
CREATE UNIQUE INDEX runs_fence ON runs (task, fence);

-- Runs of the repository's tests. `results` is large and only read as a whole.
CREATE TABLE test_runs (
    num       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        TEXT COLLATE "C" NOT NULL UNIQUE,
    at        BIGINT NOT NULL,
    root      TEXT NOT NULL,
    framework TEXT NOT NULL,
    tree      TEXT,
    doc       TEXT NOT NULL,
    results   TEXT NOT NULL
);
CREATE INDEX test_runs_of_project ON test_runs (root, framework, num);

-- Events of one task, run or lane are in the order in which they happened. Between others `seq` is the order in which
-- they were written, which is not always the one in which they were committed.
CREATE TABLE events (
    seq     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT NOT NULL,
    kind    TEXT NOT NULL,
    task_id TEXT COLLATE "C",
    session TEXT COLLATE "C",
    run_id  TEXT COLLATE "C",
    body    TEXT NOT NULL
);
CREATE INDEX events_of_task ON events (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX events_of_session ON events (session, seq) WHERE session IS NOT NULL;
CREATE INDEX events_of_run ON events (run_id, seq) WHERE run_id IS NOT NULL;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only';
END $$;
CREATE TRIGGER events_are_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
