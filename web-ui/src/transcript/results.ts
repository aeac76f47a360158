/** The result of a tool: its text, its images, and what it is when it is neither. */

import type { ToolResultEvent } from "./journal";
import { asRecord, asText } from "./journal";

export interface Picture {
  mediaType: string;
  /** Base64. */
  data: string;
}

export interface Result {
  text: string;
  pictures: Picture[];
}

/** Kinds of images that are shown; anything else is named, not drawn. */
export const PICTURE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Return what a result says. Encoded data that is no image we draw is named by its kind and size. */
export function resultOf(event: ToolResultEvent): Result {
  const shown = contentOf(event.result);
  const error = event.error ?? "";
  if (error && !shown.text.includes(error)) {
    shown.text = shown.text ? `${error}\n${shown.text}` : error;
  }
  return shown;
}

/** Return the text and the images of a value as tools return them. */
export function contentOf(value: unknown): Result {
  if (value === null || value === undefined) return { text: "", pictures: [] };
  if (typeof value === "string") return { text: value, pictures: [] };
  if (Array.isArray(value) && value.length > 0) {
    const parts = value.map(partOf);
    if (parts.every((part) => part !== null)) {
      return {
        text: parts.flatMap((part) => (typeof part === "string" ? [part] : [])).join("\n"),
        pictures: parts.filter((part) => typeof part !== "string"),
      };
    }
  }
  return { text: JSON.stringify(value, null, 2), pictures: [] };
}

function partOf(part: unknown): string | Picture | null {
  const block = asRecord(part);
  if (block === null) return typeof part === "string" ? part : null;
  if (typeof block.text === "string") return block.text;
  const source = asRecord(block.source);
  if (source !== null && typeof source.data === "string") {
    return encoded(asText(source.media_type), source.data);
  }
  if (typeof block.data === "string" && typeof block.mimeType === "string") {
    return encoded(block.mimeType, block.data);
  }
  const resource = asRecord(block.resource);
  if (resource !== null && typeof resource.blob === "string") {
    return encoded(asText(resource.mimeType), resource.blob);
  }
  return null;
}

function encoded(mediaType: string, data: string): string | Picture {
  if (PICTURE_TYPES.has(mediaType)) return { mediaType, data };
  return `[${mediaType || "data"}, ${formatSize(Math.floor((data.length * 3) / 4))}]`;
}

/** A number of bytes for people. */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let size = bytes / 1024;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}
