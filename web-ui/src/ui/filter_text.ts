/** Filters of lists as people write them: `agent:coder status:failed,running cost:>1 "two words"`. The server reads them. */

interface Term {
  /** Null for a word. */
  key: string | null;
  /** As they are written, with their quotes. */
  values: string[];
}

const TERM = /(?:([A-Za-z_]+):)?((?:"(?:[^"\\]|\\.)*"?|[^\s"])+)/g;
const VALUE = /"(?:[^"\\]|\\.)*"?|[^,]+/g;

function parse(text: string): Term[] {
  return [...text.matchAll(TERM)].map(([, key, rest = ""]) =>
    key === undefined
      ? { key: null, values: [rest] }
      : { key: key.toLowerCase(), values: rest.match(VALUE) ?? [] },
  );
}

function write(terms: readonly Term[]): string {
  return terms
    .filter(({ values }) => values.length > 0)
    .map(({ key, values }) => (key === null ? values.join(" ") : `${key}:${values.join(",")}`))
    .join(" ");
}

/** A value as a filter has it: in quotes where it holds more than letters and digits. */
export function quoted(value: string): string {
  return /^[^\s,"]+$/.test(value) ? value : `"${value.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** Whether the filter asks for this value of a key. */
export function hasTerm(text: string, key: string, value: string): boolean {
  return parse(text).some((term) => term.key === key && term.values.includes(quoted(value)));
}

/** Add a value of a key to the filter, or take it out; `isOnly` replaces other values of the key. */
export function toggleTerm(text: string, key: string, value: string, isOnly = false): string {
  const written = quoted(value);
  const terms = parse(text);
  const values = terms.filter((term) => term.key === key).flatMap((term) => term.values);
  const others = terms.filter((term) => term.key !== key);
  const left = values.includes(written)
    ? values.filter((one) => one !== written)
    : [...(isOnly ? [] : values), written];
  return write([...others, { key, values: left }]);
}
