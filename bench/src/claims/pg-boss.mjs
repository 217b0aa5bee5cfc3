// node pg-boss.mjs HOST DATABASE USER JOBS CLIENTS: milliseconds to claim and complete JOBS jobs.
import * as module from "pg-boss";

const PgBoss = module.PgBoss ?? module.default;
const [host, database, user, jobs, clients] = process.argv.slice(2);
const boss = new PgBoss({ host, database, user, max: Number(clients) + 2, supervise: false, schedule: false });
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue("work");
await boss.insert("work", Array.from({ length: Number(jobs) }, () => ({ data: {} })));
const start = performance.now();
await Promise.all(
  Array.from({ length: Number(clients) }, async () => {
    for (;;) {
      const [job] = await boss.fetch("work");
      if (!job) return;
      await boss.complete("work", job.id);
    }
  }),
);
console.log(performance.now() - start);
await boss.stop({ graceful: false });
process.exit(0);
