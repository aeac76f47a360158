/** Documents of the API by name. They come from its OpenAPI description: `schema.d.ts` is generated. */

import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type JobRow = Schemas["JobRow"];
export type RunRow = Schemas["RunRow"];
export type ItemRow = Schemas["ItemRow"];
export type ItemDocument = Schemas["ItemDocument"];
export type SessionRow = Schemas["SessionRow"];
export type ScheduleRow = Schemas["ScheduleRow"];
export type AgentRow = Schemas["AgentRow"];
export type StatusDocument = Schemas["StatusDocument"];
export type Me = Schemas["MeDocument"];
export type Role = Schemas["Role"];

/** The whole answer of a `GET` on a path, such as `Answer<"/v1/jobs">`. */
export type Answer<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer T } } } };
}
  ? T
  : never;
/** The `data` of the answer of a `GET` on a path. */
export type Data<P extends keyof paths> = Answer<P> extends { data: infer T } ? T : never;
