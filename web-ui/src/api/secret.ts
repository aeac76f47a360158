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

/** Call `changed` when another tab of this browser logs in, or is no longer logged in. */
export function onOtherTab(changed: (isLoggedIn: boolean) => void): () => void {
  const heard = ({ key, newValue }: StorageEvent) => {
    if (key === KEY) changed(newValue !== null);
  };
  window.addEventListener("storage", heard);
  return () => window.removeEventListener("storage", heard);
}
