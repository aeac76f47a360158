/** The page that `jobs export --html` and `session export --html` write: one file, which loads nothing. */

import "../styles.css";

import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { useKeyboard } from "../shell/shortcuts";
import { FileView } from "../transcript/FileView";
import type { OpenedFile } from "../transcript/parse_journal";

function readData(): OpenedFile {
  const text = document.getElementById("journal")?.textContent ?? "{}";
  return JSON.parse(text) as OpenedFile;
}

function placeOf(hash: string): { seq: number } | null {
  const seq = Number(hash.replace(/^#/, ""));
  return Number.isInteger(seq) && seq > 0 ? { seq } : null;
}

function ExportPage() {
  const [file] = useState(readData);
  const [at, setAt] = useState(() => placeOf(location.hash));
  useKeyboard();
  useEffect(() => {
    const changed = () => setAt(placeOf(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return (
    <main className="h-dvh">
      <FileView file={file} at={at} />
    </main>
  );
}

const root = document.getElementById("app");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <ExportPage />
    </StrictMode>,
  );
}
