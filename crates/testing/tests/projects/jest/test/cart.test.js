describe('cart', () => {
  test('passes', () => {});
  test('fails', () => {
    expect(1 + 1).toBe(3);
  });
  test.skip('is skipped', () => {});
  test('misbehaves', async () => {
    if (!process.env.MISBEHAVE) return;
    if (process.env.MISBEHAVE === 'crash') process.exit(3);
    await new Promise((resolve) => setTimeout(resolve, 3600e3));
  }, 3600e3);
});
