/** Return an amount in dollars: cents, and more digits for amounts below one. */
export function usdText(amount: number): string {
  const digits = amount !== 0 && Math.abs(amount) < 1 ? 4 : 2;
  const text = amount.toLocaleString("en", {
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  });
  return `$${text}`;
}

/** Return a number of things, such as `1 job` and `1,200 jobs`; nouns with another plural name it. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${countText(count)} ${count === 1 ? noun : plural}`;
}

/** Return a count with separators, such as `12,345`. */
export function countText(count: number): string {
  return count.toLocaleString("en");
}
