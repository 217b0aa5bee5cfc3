import { beforeAll, describe, expect, test } from 'vitest';
import { first } from '../cart.js';

describe('cart', () => {
  test('passes', () => {});
  test('fails', () => {
    expect(1 + 1).toBe(3);
  });
  test('throws in source', () => {
    first(undefined);
  });
  test.skip('skipped', () => {});
  test.todo('planned');
  test.each(['日本 ✓'])('parameter %s', () => {});
  let runs = 0;
  const flaky = () => {
    runs += 1;
    expect(runs).toBe(2);
  };
  // Options stand last in old versions.
  if (process.env.OLD) test('flaky', flaky, { retry: 2 });
  else test('flaky', { retry: 2 }, flaky);
});

describe('db', () => {
  beforeAll(() => {
    throw new Error('no database');
  });
  test('reads', () => {});
});

if (process.env.REJECT) test('leaves a rejection', () => void Promise.reject(new Error('nobody cares')));
if (process.env.CRASH) test('crashes', () => process.abort());
if (process.env.HANG) {
  // Vitest can lose the last update before a silence (its timer may come in the very millisecond that is too early): one that comes
  // later brings it along.
  test.concurrent('hangs', () => new Promise(() => {}), 1000000);
  test.concurrent('ends meanwhile', () => new Promise((end) => setTimeout(end, 300)));
}
