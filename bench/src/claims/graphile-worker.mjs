// node graphile-worker.mjs HOST DATABASE USER JOBS CLIENTS: milliseconds to claim and complete JOBS jobs.
import { run, runMigrations, makeWorkerUtils, Logger } from "graphile-worker";
import pg from "pg";

const [host, database, user, jobs, clients] = process.argv.slice(2);
const pgPool = new pg.Pool({ host, database, user, max: Number(clients) + 4 });
// Without these it warns of their absence, once for each pool.
pgPool.on("error", (error) => console.error(error));
pgPool.on("connect", (client) => client.on("error", (error) => console.error(error)));
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ pgPool, logger });
await runMigrations({ pgPool, logger });
await pgPool.query("SELECT graphile_worker.add_job('work', '{}'::json) FROM generate_series(1, $1::int)", [Number(jobs)]);
let left = Number(jobs);
let finish;
const finished = new Promise((resolve) => (finish = resolve));
const start = performance.now();
const runner = await run({
  pgPool,
  logger,
  concurrency: Number(clients),
  pollInterval: 100,
  noHandleSignals: true,
  taskList: { work: async () => { if (--left === 0) finish(); } },
});
await finished;
const { rows } = await pgPool.query("SELECT 1");
while ((await pgPool.query("SELECT count(*)::int AS n FROM graphile_worker.jobs")).rows[0].n > 0) {
  await new Promise((resolve) => setTimeout(resolve, 1));
}
console.log(performance.now() - start);
await runner.stop();
await utils.release();
process.exit(rows.length === 1 ? 0 : 1);
