import { expect, it } from "vitest";

import { hasAnsi, parseAnsi, stripAnsi } from "./ansi";

const ESC = "\u001b";

it("keeps colours and weights until they are reset", () => {
  const spans = parseAnsi(`plain ${ESC}[1;31mbad${ESC}[0m ${ESC}[38;5;208morange${ESC}[39m end`);
  expect(spans.map((span) => [span.text, span.foreground, span.isBold])).toEqual([
    ["plain ", null, false],
    ["bad", 1, true],
    [" ", null, false],
    ["orange", "rgb(255 135 0)", false],
    [" end", null, false],
  ]);
});

it("reads true colours, bright colours and backgrounds", () => {
  const [red, bright] = parseAnsi(`${ESC}[38;2;255;0;10;44mx${ESC}[0;97my`);
  expect(red).toMatchObject({ foreground: "rgb(255 0 10)", background: 4 });
  expect(bright).toMatchObject({ foreground: 15, background: null });
});

it("removes every other sequence, also unfinished ones", () => {
  const text = `a${ESC}[2Jb${ESC}]8;;http://evil.example${ESC}\\link${ESC}]8;;\u0007c${ESC}[?25ld\u0008\u0000e${ESC}[3`;
  expect(stripAnsi(text)).toBe("ablinkcde");
  expect(
    parseAnsi(text)
      .map((span) => span.text)
      .join(""),
  ).toBe("ablinkcde");
});

it("shows only the last state of a line that was written over", () => {
  expect(stripAnsi("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
  expect(hasAnsi("10%\r50%")).toBe(true);
  expect(hasAnsi("plain\n")).toBe(false);
});

it("never puts text of the output into a colour", () => {
  const [span] = parseAnsi(`${ESC}[38;2;300;;9999999mx`);
  expect(span?.foreground).toMatch(/^rgb\(\d{1,3} \d{1,3} \d{1,3}\)$/);
});
