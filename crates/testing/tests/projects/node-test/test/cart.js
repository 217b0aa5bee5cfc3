const assert = require('node:assert');
const { test } = require('node:test');

test('passes', () => {});
test('fails', () => {
  assert.strictEqual(1 + 1, 3);
});
test('is skipped', { skip: true }, () => {});
test('misbehaves', async () => {
  if (process.env.MISBEHAVE === 'crash') process.exit(3);
  if (process.env.MISBEHAVE === 'hang') await new Promise((resolve) => setTimeout(resolve, 3600e3));
});
