import { describe, expect, test } from 'vitest';

describe('cart', () => {
  test('passes', () => {});
  test('fails', () => {
    expect(1 + 1).toBe(3);
  });
  test.skip('is skipped', () => {});
  test('misbehaves', async () => {
    if (process.env.MISBEHAVE === 'crash') process.kill(process.pid, 'SIGKILL');
    if (process.env.MISBEHAVE === 'hang') await new Promise((resolve) => setTimeout(resolve, 3600e3));
  }, 3600e3);
});
