/** What a person approves has to be what runs: characters that hide or reorder others are shown as signs. */

/** Signs of control characters begin here: U+2400 stands for NUL, U+241B for ESC. */
const SIGNS = 0x2400;
const DELETE_SIGN = "\u2421";
/* eslint-disable no-control-regex -- these are the characters that are looked for */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
/* eslint-enable no-control-regex */
/** C1 controls, marks of direction, characters without width, tags and other formats that nobody sees. */
const HIDDEN = /[\u0080-\u009f\u00ad\p{Cf}\u2028\u2029\u3164\uffa0]/gu;

/** Return the text with every character visible; lines and tabs stay. */
export function visibleText(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(CONTROL, (character) => {
      const code = character.charCodeAt(0);
      return code === 0x7f ? DELETE_SIGN : String.fromCharCode(SIGNS + code);
    })
    .replace(HIDDEN, (character) => {
      const code = character.codePointAt(0) ?? 0;
      return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
    });
}

/** Return a JSON value with every text in it visible. */
export function visibleValue(value: unknown): unknown {
  if (typeof value === "string") return visibleText(value);
  if (Array.isArray(value)) return value.map(visibleValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [visibleText(name), visibleValue(part)]),
  );
}
