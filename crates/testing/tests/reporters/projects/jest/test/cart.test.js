const { first } = require('../cart');

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
});

describe('db', () => {
  beforeAll(() => {
    throw new Error('no database');
  });
  test('reads', () => {});
});

if (process.env.CRASH) test('crashes', () => process.abort());
if (process.env.HANG) test('hangs', () => new Promise(() => {}), 1000000);
