import "./transcript.css";

import { useMemo, type CSSProperties } from "react";

import { hasAnsi, parseAnsi, type Span } from "./ansi";

/** Output of a terminal, with its colours. */
export function AnsiText({ text }: { text: string }) {
  const spans = useMemo(() => (hasAnsi(text) ? parseAnsi(text) : null), [text]);
  if (spans === null) return <>{text}</>;
  return spans.map((span, place) => (
    <span key={place} style={styleOf(span)} className={span.isDim ? "opacity-60" : undefined}>
      {span.text}
    </span>
  ));
}

function styleOf(span: Span): CSSProperties {
  const [front, back] = span.isInverse
    ? [span.background ?? "var(--color-panel)", span.foreground ?? "var(--color-ink)"]
    : [span.foreground, span.background];
  const style: CSSProperties = {};
  if (front !== null) style.color = colour(front);
  if (back !== null) style.backgroundColor = colour(back);
  if (span.isBold) style.fontWeight = 600;
  if (span.isItalic) style.fontStyle = "italic";
  if (span.isUnderlined) style.textDecoration = "underline";
  return style;
}

function colour(value: number | string): string {
  return typeof value === "number" ? `var(--ansi-${value})` : value;
}
