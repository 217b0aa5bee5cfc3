import { describe, expect, test } from 'vitest';

describe('cart', () => {
  test('passes', () => {});
  test('fails', () => {
    expect(1 + 1).toBe(3);
  });
  test.skip('is skipped', () => {});
  test('misbehaves', async () => {
    if (!process.env.MISBEHAVE) return;
    // The results of the tests before reach the main process only after a moment.
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (process.env.MISBEHAVE === 'crash') process.kill(process.pid, 'SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 3600e3));
  }, 3600e3);
});
