/** The client of the agent identity and compliance service. */
export { Client } from "./client/client.js";
export { type Act, type ApprovalDetail, type Decision, type Waiting, asking } from "./client/deciding.js";
export type { ClientOptions, Retries } from "./client/transport.js";
export type { Common, Keyed } from "./client/typing.js";
export * from "./errors.js";
export type { components, paths } from "./generated/schema.js";
