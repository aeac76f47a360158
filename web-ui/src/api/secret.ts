/** The half of a login that the page keeps: the storage of an origin is closed to other ports and sites. */

const KEY = `nightherd.secret ${new URL(document.baseURI).pathname}`;

/** Return the secret of this login; null when there is none. */
export function readSecret(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function keepSecret(secret: string): void {
  localStorage.setItem(KEY, secret);
}

export function forgetSecret(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing is kept where storage is closed.
  }
}

/** Call `kept` when another tab of this browser keeps a new secret. */
export function onSecret(kept: () => void): () => void {
  const heard = ({ key, newValue }: StorageEvent) => {
    if (key === KEY && newValue !== null) kept();
  };
  window.addEventListener("storage", heard);
  return () => window.removeEventListener("storage", heard);
}
