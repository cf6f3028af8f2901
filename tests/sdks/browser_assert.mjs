// As much of `node:assert/strict` as the cases use, for a browser.

function fail(message, actual, expected) {
  const shown = [actual, expected].map((value) => JSON.stringify(value) ?? String(value));
  throw new Error(message ?? `${shown[0]} is not ${shown[1]}`);
}

function same(one, other) {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Date) return one.getTime() === other.getTime();
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]))
  );
}

function isExpected(error, expected) {
  if (expected === undefined) return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === 'object') return Object.keys(expected).every((key) => same(error[key], expected[key]));
  return expected.prototype !== undefined && error instanceof expected ? true : expected(error) === true;
}

export default {
  ok: (value, message) => value || fail(message, value, true),
  equal: (actual, expected, message) => Object.is(actual, expected) || fail(message, actual, expected),
  deepEqual: (actual, expected, message) => same(actual, expected) || fail(message, actual, expected),
  match: (text, pattern) => pattern.test(text) || fail(undefined, text, pattern),
  throws(body, expected) {
    try {
      body();
    } catch (error) {
      return isExpected(error, expected) || fail(`another error was thrown: ${error}`);
    }
    return fail('nothing was thrown');
  },
  async rejects(promise, expected) {
    try {
      await (typeof promise === 'function' ? promise() : promise);
    } catch (error) {
      return isExpected(error, expected) || fail(`another error came: ${error}`);
    }
    return fail('it was not refused');
  },
};
