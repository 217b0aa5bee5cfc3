require('./not-there');
test('never loaded', () => {});
