/** Notifications of this browser: its service worker, its subscription and what the server knows of it. */

import { get, post, remove } from "../api/client";
import { PUSH_KEY } from "./push_key";

export type PushTopic = "inbox" | "failures";

const TRUSTED = "nightherd";

/** Return why this browser cannot show notifications; null when it can. */
export function whyNoPush(): string | null {
  if (!window.isSecureContext) {
    return "Notifications need HTTPS or localhost: browsers allow them nowhere else.";
  }
  if (!("serviceWorker" in navigator) || !("PushManager" in window)) {
    return "This browser has no Web Push. On an iPhone, add the page to the home screen first.";
  }
  if (Notification.permission === "denied") {
    return "Notifications of this page are blocked in the settings of the browser.";
  }
  return null;
}

/** Register the service worker, once. */
export async function registerWorker(): Promise<ServiceWorkerRegistration> {
  const url = new URL("sw.js", document.baseURI).href;
  const registration = await navigator.serviceWorker.register(trustedUrl(url), {
    scope: new URL(".", document.baseURI).pathname,
    updateViaCache: "none",
  });
  await navigator.serviceWorker.ready;
  return registration;
}

/** Subscribe this browser, or change what it hears of. */
export async function subscribe<T>(publicKey: string, topics: readonly PushTopic[]): Promise<T> {
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("the browser was not allowed to show notifications");
  }
  const registration = await registerWorker();
  const key = bytesOf(publicKey);
  let subscription = await registration.pushManager.getSubscription();
  if (subscription !== null && !isSame(subscription.options.applicationServerKey, key)) {
    await subscription.unsubscribe();
    subscription = null;
  }
  subscription ??= await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: key,
  });
  const { endpoint, keys } = subscription.toJSON();
  return post<T>("/push/subscriptions", { endpoint, keys, topics, label: labelOf(navigator) });
}

/** End the subscription of this browser. */
export async function unsubscribe(id: string): Promise<void> {
  await remove(`/push/subscriptions/${encodeURIComponent(id)}`);
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  await subscription?.unsubscribe();
}

/** After another login: a browser that has a subscription belongs to this login from now on. */
export async function renewSubscription(login: string): Promise<void> {
  const kept = readKept();
  if (kept === null || kept.login === login || whyNoPush() !== null) return;
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  if (subscription == null) return;
  const { public_key: key } = await get<{ public_key: string | null }>("/push");
  if (key === null) return;
  const { id } = await subscribe<{ id: string }>(key, kept.topics);
  keepSubscription({ ...kept, id, login });
}

interface Kept {
  id: string;
  topics: PushTopic[];
  /** When the login ends that the subscription belongs to: it tells logins apart. */
  login: string;
}

/** Remember which of the server's subscriptions is this browser's. */
export function keepSubscription(kept: Kept | null): void {
  if (kept === null) localStorage.removeItem(PUSH_KEY);
  else localStorage.setItem(PUSH_KEY, JSON.stringify(kept));
}

export function readSubscription(): string | null {
  return readKept()?.id ?? null;
}

function readKept(): Kept | null {
  try {
    return JSON.parse(localStorage.getItem(PUSH_KEY) ?? "null") as Kept | null;
  } catch {
    return null;
  }
}

/** Return a name for a browser, such as `Chrome on Android`. */
export function labelOf(browser: { userAgent: string }): string {
  const text = browser.userAgent;
  const find = (names: readonly (readonly [RegExp, string])[], other: string) =>
    names.find(([pattern]) => pattern.test(text))?.[1] ?? other;
  const program = find(
    [
      [/Edg\//, "Edge"],
      [/Firefox\//, "Firefox"],
      [/Chrome\//, "Chrome"],
      [/Safari\//, "Safari"],
    ],
    "Browser",
  );
  const system = find(
    [
      [/Android/, "Android"],
      [/iPhone|iPad/, "iOS"],
      [/Mac OS X/, "macOS"],
      [/Windows/, "Windows"],
      [/Linux/, "Linux"],
    ],
    "this device",
  );
  return `${program} on ${system}`;
}

/** Return the bytes of a key in base64url. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

function isSame(known: ArrayBuffer | null, key: Uint8Array): boolean {
  if (known === null) return false;
  const bytes = new Uint8Array(known);
  return bytes.length === key.length && bytes.every((byte, place) => byte === key[place]);
}

/** The one script address that the page may load a worker from. */
function trustedUrl(url: string): string {
  const factory = (window as { trustedTypes?: TrustedTypePolicyFactory }).trustedTypes;
  if (factory === undefined) return url;
  policy ??= factory.createPolicy(TRUSTED, {
    createScriptURL: (asked: string) => {
      if (asked === new URL("sw.js", document.baseURI).href) return asked;
      throw new TypeError("not a script of the dashboard");
    },
  });
  return policy.createScriptURL(url) as unknown as string;
}

let policy: Pick<TrustedTypePolicy, "createScriptURL"> | null = null;
