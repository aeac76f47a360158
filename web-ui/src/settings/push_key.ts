/** Where a browser keeps which subscription is its own. */
export const PUSH_KEY = "nightherd.push";
