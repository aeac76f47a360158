/** Terminal output as spans: colours and weights are kept, every other control sequence is removed. */

export interface Span {
  text: string;
  /** A palette index (0-15) or a CSS colour; null for the default. */
  foreground: number | string | null;
  background: number | string | null;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
  isInverse: boolean;
}

type Style = Omit<Span, "text">;

const PLAIN: Style = {
  foreground: null,
  background: null,
  isBold: false,
  isDim: false,
  isItalic: false,
  isUnderlined: false,
  isInverse: false,
};

/* eslint-disable no-control-regex -- control characters are what this file is about */
/** CSI, OSC (ended by BEL or ST), other strings, and two-character escapes; unfinished ones end with the text. */
const SEQUENCE =
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~]?)|\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[PX^_][^\u001b\u009c]*(?:\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009a\u009c-\u009f]/g;
/* eslint-enable no-control-regex */

/** Whether the text has escape sequences or lines that were written over. */
export function hasAnsi(text: string): boolean {
  return text.includes("\u001b") || text.includes("\u009b") || text.includes("\r");
}

/** Return the text as spans. */
export function parseAnsi(text: string): Span[] {
  const spans: Span[] = [];
  let style = PLAIN;
  let end = 0;
  for (const match of overwritten(text).matchAll(SEQUENCE)) {
    push(spans, match.input.slice(end, match.index), style);
    end = match.index + match[0].length;
    if (match[2] === "m") style = restyle(style, match[1] ?? "");
  }
  push(spans, overwritten(text).slice(end), style);
  return spans;
}

/** Return the text without any control sequence. */
export function stripAnsi(text: string): string {
  return overwritten(text).replace(SEQUENCE, "").replace(CONTROLS, "");
}

function push(spans: Span[], text: string, style: Style): void {
  const shown = text.replace(CONTROLS, "");
  if (!shown) return;
  const last = spans.at(-1);
  if (last !== undefined && isSame(last, style)) last.text += shown;
  else spans.push({ ...style, text: shown });
}

function isSame(span: Span, style: Style): boolean {
  return (Object.keys(style) as (keyof Style)[]).every((key) => span[key] === style[key]);
}

/** A carriage return begins the line again: of a progress bar only its last state is left. */
function overwritten(text: string): string {
  if (!text.includes("\r")) return text;
  return text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "")
    .join("\n");
}

function restyle(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  const style = { ...before };
  for (let place = 0; place < codes.length; place += 1) {
    const code = codes[place] ?? 0;
    if (code === 38 || code === 48) {
      const [colour, used] = extended(codes, place + 1);
      if (code === 38) style.foreground = colour;
      else style.background = colour;
      place += used;
    } else apply(style, code);
  }
  return style;
}

function apply(style: Style, code: number): void {
  if (code === 0) Object.assign(style, PLAIN);
  else if (code === 1) style.isBold = true;
  else if (code === 2) style.isDim = true;
  else if (code === 3) style.isItalic = true;
  else if (code === 4) style.isUnderlined = true;
  else if (code === 7) style.isInverse = true;
  else if (code === 22) style.isBold = style.isDim = false;
  else if (code === 23) style.isItalic = false;
  else if (code === 24) style.isUnderlined = false;
  else if (code === 27) style.isInverse = false;
  else if (code >= 30 && code <= 37) style.foreground = code - 30;
  else if (code === 39) style.foreground = null;
  else if (code >= 40 && code <= 47) style.background = code - 40;
  else if (code === 49) style.background = null;
  else if (code >= 90 && code <= 97) style.foreground = code - 82;
  else if (code >= 100 && code <= 107) style.background = code - 92;
}

/** A colour of the 256-colour palette (`5;n`) or of red, green and blue (`2;r;g;b`), and how many codes it took. */
function extended(codes: number[], place: number): [number | string | null, number] {
  if (codes[place] === 5) return [indexed(codes[place + 1] ?? 0), 2];
  if (codes[place] === 2) {
    const [red, green, blue] = [1, 2, 3].map((offset) => byte(codes[place + offset]));
    return [`rgb(${red} ${green} ${blue})`, 4];
  }
  return [null, 0];
}

function indexed(index: number): number | string {
  if (!Number.isInteger(index) || index < 0 || index > 255) return 7;
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const cube = index - 16;
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}

function byte(value: number | undefined): number {
  return value !== undefined && Number.isInteger(value) ? Math.min(255, Math.max(0, value)) : 0;
}
