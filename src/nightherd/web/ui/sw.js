// The service worker: shows pushes as notifications. It answers no request and keeps nothing.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const { title, path } = readPayload(event.data);
  event.waitUntil(
    self.registration.showNotification(title, {
      tag: path,
      renotify: path !== "",
      icon: new URL("icon-192.png", self.registration.scope).href,
      data: { path },
    }),
  );
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data?.path ?? ""));
});

/** The title and the path of a push; a push that cannot be read still shows something. */
function readPayload(data) {
  try {
    const payload = data.json();
    if (typeof payload.title === "string" && typeof payload.path === "string") return payload;
  } catch {
    // Shown as below.
  }
  return { title: "nightherd", path: "" };
}

/** Show a page of the dashboard in a window that is open, or in a new one. */
async function show(path) {
  const scope = self.registration.scope;
  const url = new URL(path, scope);
  // Only pages of the dashboard are opened, whatever the push says.
  const address = url.href.startsWith(scope) ? url.href : scope;
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find((client) => client.url.startsWith(scope));
  if (open === undefined) return self.clients.openWindow(address);
  await open.focus();
  return open.navigate(address).catch(() => self.clients.openWindow(address));
}
