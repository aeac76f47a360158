import "./transcript.css";

import { memo } from "react";

import { renderMarkdown } from "./markdown";

/** A text that an agent wrote in markdown. The only place of the dashboard where text becomes HTML. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const html = renderMarkdown(text);
  if (html === null) {
    return <pre className="text-sm [overflow-wrap:anywhere] whitespace-pre-wrap">{text}</pre>;
  }
  return <div className="prose" dangerouslySetInnerHTML={{ __html: html }} />;
});
