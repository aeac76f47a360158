import { useEffect, useRef, useState } from "react";

import type { Picture as PictureData } from "./results";

const LARGEST_PX = 4_096;

/** An image of a tool's result, drawn on a canvas: no address is loaded, and only kinds we know are decoded. */
export function Picture({ picture }: { picture: PictureData }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let isGone = false;
    void draw(picture, canvas.current, () => isGone).catch(() => {
      if (!isGone) setProblem(`[${picture.mediaType}: it cannot be decoded]`);
    });
    return () => {
      isGone = true;
    };
  }, [picture]);
  if (problem !== null) return <p className="text-sm text-faint">{problem}</p>;
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={`image, ${picture.mediaType}`}
      className="max-h-96 max-w-full rounded-md border border-line object-contain"
    />
  );
}

async function draw(
  picture: PictureData,
  canvas: HTMLCanvasElement | null,
  isGone: () => boolean,
): Promise<void> {
  const bytes = Uint8Array.from(atob(picture.data), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: picture.mediaType }));
  const scale = Math.min(1, LARGEST_PX / Math.max(bitmap.width, bitmap.height));
  if (canvas !== null && !isGone()) {
    canvas.width = Math.round(bitmap.width * scale);
    canvas.height = Math.round(bitmap.height * scale);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  }
  bitmap.close();
}
