//! The lanes that tasks wait in, and the first of each.
//!
//! A lane is found from the one before it by a jump in the index, and so is its first task: it does not matter how many
//! tasks there are. The conditions are those of the partial index, word for word, or it is not used. In PostgreSQL a lane
//! lies between itself and itself, and is sorted by: no other index can yield that, whatever the statistics say.

/// The beginning of a statement: `lanes (lane)`, the last of which is null.
macro_rules! lanes {
    () => {
        "WITH RECURSIVE lanes (lane) AS (
             SELECT min(lane) FROM tasks WHERE claimable_at IS NOT NULL AND open_deps = 0
             UNION ALL
             SELECT (SELECT min(lane) FROM tasks
                     WHERE claimable_at IS NOT NULL AND open_deps = 0 AND lane > lanes.lane)
             FROM lanes WHERE lane IS NOT NULL) "
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
        "lanes CROSS JOIN LATERAL (
             SELECT * FROM tasks
             WHERE lane >= lanes.lane AND lane <= lanes.lane
               AND claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= $1
             ORDER BY lane, priority, created_at, num LIMIT 1) AS t"
    };
}
pub(crate) use first_of_lanes;
