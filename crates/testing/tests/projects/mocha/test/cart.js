const assert = require('node:assert');

describe('cart', () => {
  it('passes', () => {});
  it('fails', () => {
    assert.strictEqual(1 + 1, 3);
  });
  it.skip('is skipped', () => {});
  it('misbehaves', (done) => {
    if (process.env.MISBEHAVE === 'crash') process.exit(3);
    if (process.env.MISBEHAVE === 'hang') return setTimeout(done, 3600e3);
    done();
  });
});
