import { memo } from "react";

import { renderMarkdown } from "./markdown";

/** A text that an agent wrote in markdown. The only place of the dashboard where text becomes HTML. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const html = renderMarkdown(text);
  if (html === null) {
    return <pre className="text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</pre>;
  }
  // eslint-disable-next-line no-restricted-syntax -- DOMPurify made it, and returns TrustedHTML
  return <div className="prose" dangerouslySetInnerHTML={{ __html: html }} />;
});
