// Four documents, and what each operator of a query finds among them. The SDKs for servers and for browsers must agree.

export const PEOPLE = {
  ada: { born: 1815, tags: ['maths', 'code'], city: 'London', score: 1.5 },
  alan: { born: 1912, tags: ['code'], city: 'London', score: NaN },
  emmy: { born: 1882, tags: ['maths'], city: 'Erlangen', score: null },
  grace: { born: 1906, tags: ['code', 'navy'], city: 'New York' },
};

export const OPERATORS = [
  ['born', '==', 1882, 'emmy'],
  ['born', '!=', 1882, 'ada grace alan'],
  ['born', '<', 1906, 'ada emmy'],
  ['born', '<=', 1906, 'ada emmy grace'],
  ['born', '>', 1906, 'alan'],
  ['born', '>=', 1906, 'grace alan'],
  ['born', 'in', [1815, 1906, 7], 'ada grace'],
  ['born', 'not-in', [1815, 1906], 'emmy alan'],
  ['tags', 'array-contains', 'maths', 'ada emmy'],
  ['tags', 'array-contains-any', ['maths', 'navy'], 'ada emmy grace'],
  ['score', '==', null, 'emmy'],
  ['score', '==', NaN, 'alan'],
  ['score', '!=', null, 'alan ada'],
  ['score', '!=', NaN, 'ada'],
];
