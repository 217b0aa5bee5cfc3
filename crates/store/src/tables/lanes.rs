//! The lanes that tasks wait in, and the first of each.
//!
//! A lane is found from the one before it by a jump in the index, and so is its first task: it does not matter how many
//! tasks there are. The conditions are those of the partial index, word for word, or it is not used. PostgreSQL is asked
//! for the order of that index, which no other can yield, whatever the statistics say.

/// The beginning of a statement. In SQLite `lanes (lane)`, the last of which is null; in PostgreSQL `firsts`: the first
/// task of each lane that may be claimed at `$1`, as far as the index knows it.
macro_rules! lanes {
    (sqlite) => {
        "WITH RECURSIVE lanes (lane) AS (
             SELECT min(lane) FROM tasks WHERE claimable_at IS NOT NULL AND open_deps = 0
             UNION ALL
             SELECT (SELECT min(lane) FROM tasks
                     WHERE claimable_at IS NOT NULL AND open_deps = 0 AND lane > lanes.lane)
             FROM lanes WHERE lane IS NOT NULL) "
    };
    (postgres) => {
        "WITH RECURSIVE firsts (lane, num, priority, created_at) AS (
             (SELECT lane, num, priority, created_at FROM tasks
              WHERE claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= $1
              ORDER BY lane, priority, created_at, num LIMIT 1)
             UNION ALL
             SELECT next.* FROM firsts CROSS JOIN LATERAL (
                 SELECT lane, num, priority, created_at FROM tasks
                 WHERE claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= $1 AND lane > firsts.lane
                 ORDER BY lane, priority, created_at, num LIMIT 1) AS next)"
    };
}
pub(crate) use lanes;

/// A source of rows: the first task of each lane that may be claimed at `$1`.
macro_rules! first_of_lanes {
    (sqlite) => {
        "(SELECT (SELECT num FROM tasks
                  WHERE lane = lanes.lane AND claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= $1
                  ORDER BY priority, created_at, num LIMIT 1) AS num
          FROM lanes) AS first CROSS JOIN tasks AS t ON t.num = first.num"
    };
    (postgres) => {
        "firsts JOIN tasks AS t ON t.num = firsts.num"
    };
}
pub(crate) use first_of_lanes;
